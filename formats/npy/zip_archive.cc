#include "formats/npy/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

namespace kiln::npy {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20;
constexpr uint64_t kInExtra = 0xFFFFFFFF;  // a 32-bit field whose value is in the ZIP64 extra
constexpr uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8;

using Bytes = std::span<const std::byte>;

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

// REQUIRES: at + width <= bytes.size().
uint64_t number(Bytes bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

// `length` bytes from `offset`, if the archive has them.
std::optional<Bytes> piece(Bytes archive, uint64_t offset, uint64_t length) {
  if (offset > archive.size() || length > archive.size() - offset) return std::nullopt;
  return archive.subspan(offset, length);
}

struct Directory {
  uint64_t members = 0, offset = 0, bytes = 0;
};

std::optional<size_t> find_end(Bytes archive) {
  constexpr size_t kLongestComment = 0xFFFF;
  if (archive.size() < kEndBytes) return std::nullopt;
  const size_t last = archive.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kLongestComment); ++back) {
    if (number(archive, last - back, 4) == kEndMagic) return last - back;
  }
  return std::nullopt;
}

Result<Directory> find_directory(Bytes archive) {
  const auto end = find_end(archive);
  if (!end) return corrupt("the archive has no end record: the file is truncated");
  Directory directory{number(archive, *end + 10, 2), number(archive, *end + 16, 4),
                      number(archive, *end + 12, 4)};
  const bool zip64 =
      *end >= kLocator64Bytes && number(archive, *end - kLocator64Bytes, 4) == kLocator64Magic;
  if (!zip64) return directory;
  const uint64_t at = number(archive, *end - kLocator64Bytes + 8, 8);
  const auto record = piece(archive, at, kEnd64Bytes);
  if (!record || number(*record, 0, 4) != kEnd64Magic) {
    return corrupt("the archive's ZIP64 end record is not where its locator says");
  }
  return Directory{number(*record, 32, 8), number(*record, 48, 8), number(*record, 40, 8)};
}

struct Sizes {
  uint64_t unpacked, packed, offset;
};

// Fields that did not fit 32 bits follow in the ZIP64 extra, in this order.
bool read_zip64_extra(Bytes extra, Sizes& sizes) {
  size_t at = 0;
  while (at + 4 <= extra.size()) {
    const uint64_t id = number(extra, at, 2), length = number(extra, at + 2, 2);
    at += 4;
    if (length > extra.size() - at) return false;
    if (id != 1) {
      at += length;
      continue;
    }
    const size_t end = at + length;
    for (uint64_t* field : {&sizes.unpacked, &sizes.packed, &sizes.offset}) {
      if (*field != kInExtra) continue;
      if (at + 8 > end) return false;
      *field = number(extra, at, 8);
      at += 8;
    }
    return true;
  }
  return true;
}

Result<Bytes> find_packed(Bytes archive, const std::string& name, const Sizes& sizes) {
  const auto local = piece(archive, sizes.offset, kLocalBytes);
  if (!local || number(*local, 0, 4) != kLocalMagic) {
    return corrupt("member '" + name + "': no record at its offset " +
                   std::to_string(sizes.offset));
  }
  const uint64_t begin = sizes.offset + kLocalBytes + number(*local, 26, 2) + number(*local, 28, 2);
  const auto packed = piece(archive, begin, sizes.packed);
  if (!packed) {
    return corrupt("member '" + name + "': its " + std::to_string(sizes.packed) +
                   " bytes lie outside of the file, which has " + std::to_string(archive.size()));
  }
  return *packed;
}

// Reads the entry at the front of `directory` and advances it.
Result<ZipMember> read_entry(Bytes archive, Bytes& directory) {
  if (directory.size() < kCentralBytes || number(directory, 0, 4) != kCentralMagic) {
    return corrupt("the archive's directory is damaged");
  }
  const uint64_t name_bytes = number(directory, 28, 2), extra_bytes = number(directory, 30, 2),
                 comment_bytes = number(directory, 32, 2);
  const uint64_t entry_bytes = kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  if (entry_bytes > directory.size()) return corrupt("the archive's directory is truncated");
  ZipMember member;
  member.name.assign(reinterpret_cast<const char*>(directory.data()) + kCentralBytes, name_bytes);
  const uint64_t flags = number(directory, 8, 2), method = number(directory, 10, 2);
  if ((flags & kEncrypted) != 0) {
    return Error{ErrorCode::kUnsupported, "member '" + member.name + "' is encrypted"};
  }
  if (method != kStored && method != kDeflated) {
    return Error{ErrorCode::kUnsupported, "member '" + member.name + "' has compression method " +
                                              std::to_string(method) +
                                              ", expected 0 (stored) or 8 (deflated)"};
  }
  member.deflated = method == kDeflated;
  member.crc = static_cast<uint32_t>(number(directory, 16, 4));
  Sizes sizes{number(directory, 24, 4), number(directory, 20, 4), number(directory, 42, 4)};
  if (!read_zip64_extra(directory.subspan(kCentralBytes + name_bytes, extra_bytes), sizes)) {
    return corrupt("member '" + member.name + "': its ZIP64 sizes are damaged");
  }
  directory = directory.subspan(entry_bytes);
  member.bytes = sizes.unpacked;
  KILN_ASSIGN_OR_RETURN(member.packed, find_packed(archive, member.name, sizes));
  return member;
}

Result<> check_unpacked_size(const ZipMember& member) {
  constexpr uint64_t kMostRatio = 1032;  // of deflate
  const uint64_t packed = member.packed.size();
  const bool possible =
      member.deflated ? member.bytes / kMostRatio <= packed : member.bytes == packed;
  if (possible) return Ok();
  return corrupt("member '" + member.name + "': claims to unpack " + std::to_string(packed) +
                 " bytes to " + std::to_string(member.bytes));
}

uint32_t crc_of(Bytes bytes, uint32_t crc = 0) {
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const size_t length = std::min(kPiece, bytes.size() - at);
    crc = static_cast<uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(length)));
  }
  return crc;
}

bool inflate_all(Bytes packed, std::span<std::byte> out) {
  constexpr size_t kPiece = size_t{1} << 30;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;  // raw: no zlib header
  size_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t in = std::min(kPiece, packed.size() - read);
    const size_t room = std::min(kPiece, out.size() - written);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t consumed = in - stream.avail_in, made = room - stream.avail_out;
    read += consumed;
    written += made;
    if (consumed == 0 && made == 0 && status == Z_OK) break;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && written == out.size();
}

class Record {
 public:
  Record& add(uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
    }
    return *this;
  }
  Record& add(std::string_view text) {
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// What the local record and the directory entry share: from "version needed" to the sizes.
void add_description(Record& record, uint32_t crc, uint64_t bytes, size_t name_bytes) {
  constexpr uint64_t kVersion = 20, kUtf8Names = 0x800, kDate1980 = 0x21;
  record.add(kVersion, 2).add(kUtf8Names, 2).add(kStored, 2).add(0, 2).add(kDate1980, 2);
  record.add(crc, 4).add(bytes, 4).add(bytes, 4).add(name_bytes, 2).add(0, 2);
}

}  // namespace

bool has_zip_magic(Bytes file) {
  if (file.size() < 4) return false;
  const uint64_t magic = number(file, 0, 4);
  return magic == kLocalMagic || magic == kEndMagic;
}

Result<std::vector<ZipMember>> list_members(Bytes archive) {
  KILN_ASSIGN_OR_RETURN(const Directory found, find_directory(archive));
  auto directory = piece(archive, found.offset, found.bytes);
  if (!directory || found.members > found.bytes / kCentralBytes) {
    return corrupt("the archive's directory lies outside of the file");
  }
  std::vector<ZipMember> members;
  for (uint64_t i = 0; i < found.members; ++i) {
    KILN_ASSIGN_OR_RETURN(auto member, read_entry(archive, *directory));
    KILN_RETURN_IF_ERROR(check_unpacked_size(member));
    members.push_back(std::move(member));
  }
  return members;
}

Result<SharedBytes> unpack(const ZipMember& member, const SharedBytes& archive) {
  SharedBytes content{archive.owner, member.packed};
  if (member.deflated) {
    std::vector<std::byte> bytes;
    try {
      bytes.resize(member.bytes);
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::kOutOfMemory, "member '" + member.name + "': no memory for its " +
                                                std::to_string(member.bytes) + " bytes"};
    }
    if (!inflate_all(member.packed, bytes)) {
      return corrupt("member '" + member.name + "': its compressed data is damaged");
    }
    content = SharedBytes::take(std::move(bytes));
  }
  if (crc_of(content.bytes) != member.crc) {
    return corrupt("member '" + member.name + "': its checksum is wrong, the file is damaged");
  }
  return content;
}

Result<ZipWriter> ZipWriter::lay_out(std::span<const Content> contents) {
  constexpr uint64_t kMostBytes = std::numeric_limits<uint32_t>::max() - uint64_t{1};
  ZipWriter writer;
  writer.records.reserve(contents.size() + 1);  // pieces are views of the records
  Record directory;
  uint64_t offset = 0;
  for (const Content& content : contents) {
    uint64_t bytes = 0;
    uint32_t crc = 0;
    for (Bytes data : content.pieces) {
      bytes += data.size();
      crc = crc_of(data, crc);
    }
    Record local;
    local.add(kLocalMagic, 4);
    add_description(local, crc, bytes, content.name.size());
    local.add(content.name);
    writer.records.push_back(local.take());
    writer.pieces.emplace_back(writer.records.back());
    writer.pieces.insert(writer.pieces.end(), content.pieces.begin(), content.pieces.end());

    directory.add(kCentralMagic, 4).add(20, 2);
    add_description(directory, crc, bytes, content.name.size());
    directory.add(0, 2).add(0, 2).add(0, 2).add(0, 4).add(offset, 4).add(content.name);
    offset += writer.records.back().size() + bytes;
    if (offset > kMostBytes) {
      return Error{ErrorCode::kUnsupported,
                   "the archive would pass 4 GiB: write the arrays as .npy files"};
    }
  }
  std::vector<std::byte> entries = directory.take();
  Record end;
  end.add(kEndMagic, 4).add(0, 4).add(contents.size(), 2).add(contents.size(), 2);
  end.add(entries.size(), 4).add(offset, 4).add(0, 2);
  const auto tail = end.take();
  entries.insert(entries.end(), tail.begin(), tail.end());
  writer.records.push_back(std::move(entries));
  writer.pieces.emplace_back(writer.records.back());
  return writer;
}

}  // namespace kiln::npy
