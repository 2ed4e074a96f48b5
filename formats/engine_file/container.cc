#include "formats/engine_file/container.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace kiln::engine_file {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is mapped, not converted");

constexpr uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

std::string hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

std::string found_expected(uint64_t found, uint64_t expected) {
  return std::to_string(found) + ", expected " + std::to_string(expected);
}

Error checksum_error(std::string_view what, uint64_t found, uint64_t expected) {
  return corrupt(std::string(what) + " is damaged: its checksum is " + hex(found) + ", expected " +
                 hex(expected));
}

Result<Header> read_header(Bytes file) {
  Header header;
  if (file.size() < header.magic.size() ||
      !std::equal(header.magic.begin(), header.magic.end(),
                  reinterpret_cast<const unsigned char*>(file.data()))) {
    return corrupt("is not an engine: it does not start with Kiln's magic bytes");
  }
  if (file.size() < kHeaderBytes) {
    return corrupt("is cut off: header is " + found_expected(file.size(), kHeaderBytes) + " bytes");
  }
  std::memcpy(&header, file.data(), sizeof(header));
  // Before the checksum: a newer version may place it elsewhere.
  if (header.version > kFormatVersion || header.version == 0) {
    return Error{ErrorCode::kVersionMismatch,
                 "has format version " + std::to_string(header.version) +
                     ", this library reads 1 to " + std::to_string(kFormatVersion) +
                     "; update Kiln, or build the engine again with this version"};
  }
  if (header.section_count != kSections.size()) {
    return corrupt("section count is " + found_expected(header.section_count, kSections.size()));
  }
  if (header.file_bytes != file.size()) {
    return corrupt("is cut off or has grown: it has " +
                   found_expected(file.size(), header.file_bytes) + " bytes");
  }
  const uint64_t found = header_checksum(file.first<kHeaderBytes>());
  if (found != header.checksum) return checksum_error("header", found, header.checksum);
  return header;
}

// The entry of section `i`, which must start where the previous section ends, but for padding.
Result<Bytes> find_section(Bytes file, size_t i, uint64_t previous_end, SectionEntry& entry) {
  std::memcpy(&entry, file.data() + sizeof(Header) + i * sizeof(entry), sizeof(entry));
  const std::string name = "section '" + std::string(to_string(kSections[i])) + "'";
  if (entry.id != static_cast<uint32_t>(kSections[i])) {
    return corrupt(name + ": id is " + found_expected(entry.id, uint32_t(kSections[i])));
  }
  if (entry.reserved != 0) return corrupt(name + ": reserved field is not zero");
  const uint64_t start = round_up(previous_end, alignment_of(kSections[i]));
  if (entry.offset != start) {
    return corrupt(name + ": offset is " + found_expected(entry.offset, start));
  }
  if (start > file.size() || entry.bytes > file.size() - start) {
    return corrupt(name + ": " + std::to_string(entry.bytes) + " bytes at offset " +
                   std::to_string(start) + " end after the file's " + std::to_string(file.size()) +
                   " bytes");
  }
  const Bytes padding = file.subspan(previous_end, start - previous_end);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{}; })) {
    return corrupt(name + ": the padding before it is not zero");
  }
  return file.subspan(start, entry.bytes);
}

}  // namespace

std::string_view to_string(SectionId id) {
  constexpr std::array<std::string_view, 5> kNames = {"?", "plan", "blobs", "report", "weights"};
  return kNames[static_cast<size_t>(id)];
}

uint64_t alignment_of(SectionId id) { return id == SectionId::kWeights ? 4096 : 64; }

uint64_t checksum_of(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t header_checksum(std::span<const std::byte, kHeaderBytes> header_and_table) {
  std::array<std::byte, kHeaderBytes> copy;
  std::copy(header_and_table.begin(), header_and_table.end(), copy.begin());
  std::memset(copy.data() + offsetof(Header, checksum), 0, sizeof(Header::checksum));
  return checksum_of(copy);
}

Layout lay_out(const Sections& sections) {
  Layout layout;
  Header header;
  std::array<SectionEntry, kSections.size()> table;
  uint64_t end = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    table[i] = {.id = static_cast<uint32_t>(kSections[i]),
                .offset = round_up(end, alignment_of(kSections[i])),
                .bytes = sections[i].size(),
                .checksum = checksum_of(sections[i])};
    layout.offsets[i] = table[i].offset;
    end = table[i].offset + table[i].bytes;
  }
  header.file_bytes = end;
  std::memcpy(layout.head.data(), &header, sizeof(header));
  std::memcpy(layout.head.data() + sizeof(header), table.data(), sizeof(table));
  header.checksum = header_checksum(layout.head);
  std::memcpy(layout.head.data(), &header, sizeof(header));
  return layout;
}

Result<Sections> find_sections(Bytes file, bool check_weights) {
  KILN_RETURN_IF_ERROR(read_header(file));
  Sections sections;
  uint64_t end = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    SectionEntry entry;
    KILN_ASSIGN_OR_RETURN(sections[i], find_section(file, i, end, entry));
    end = entry.offset + entry.bytes;
    if (kSections[i] == SectionId::kWeights && !check_weights) continue;
    const uint64_t found = checksum_of(sections[i]);
    if (found != entry.checksum) {
      return checksum_error("section '" + std::string(to_string(kSections[i])) + "'", found,
                            entry.checksum);
    }
  }
  if (end != file.size()) {
    return corrupt("sections end at byte " + found_expected(end, file.size()));
  }
  return sections;
}

}  // namespace kiln::engine_file
