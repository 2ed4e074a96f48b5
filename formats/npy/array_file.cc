#include "formats/npy/array_file.h"

#include <cstring>
#include <new>

#include "formats/file/atomic_file.h"
#include "formats/file/mapped_file.h"
#include "formats/npy/npy_header.h"
#include "formats/npy/zip_archive.h"

namespace kiln::npy {
namespace {

// The axes of `in` reversed: column-major data becomes row-major.
void reorder(const std::byte* in, std::byte* out, const Shape& shape, size_t element) {
  const auto count = static_cast<size_t>(element_count(shape));
  Shape index(shape.size(), 0);
  Shape strides(shape.size(), 1);  // of column-major data, in elements
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    strides[axis] = strides[axis - 1] * shape[axis - 1];
  }
  int64_t source = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * element, in + static_cast<size_t>(source) * element, element);
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

Result<Array> parse_npy(const SharedBytes& file) {
  KILN_ASSIGN_OR_RETURN(const Header header, parse_header(file.bytes));
  Array array;
  array.type = header.type;
  array.raw = header.raw;
  array.data = {file.owner, file.bytes.subspan(header.bytes)};
  const auto element = static_cast<size_t>(bits_of(header.type.dtype)) / 8;
  const bool aligned = reinterpret_cast<uintptr_t>(array.data.data()) % element == 0;
  const bool reorders = header.fortran_order && header.type.rank() > 1;
  if (array.data.size() == 0 || (aligned && !reorders)) return array;
  try {
    std::vector<std::byte> copy(array.data.size());
    if (reorders) {
      reorder(array.data.data(), copy.data(), header.type.shape, element);
    } else {
      std::memcpy(copy.data(), array.data.data(), copy.size());
    }
    array.data = SharedBytes::take(std::move(copy));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory,
                 "no memory for " + std::to_string(array.data.size()) + " bytes"};
  }
  return array;
}

Result<std::vector<Array>> parse_npz(const SharedBytes& file) {
  KILN_ASSIGN_OR_RETURN(const auto members, list_members(file.bytes));
  constexpr std::string_view kSuffix = ".npy";
  std::vector<Array> arrays;
  for (const ZipMember& member : members) {
    KILN_ASSIGN_OR_RETURN(const auto content, unpack(member, file));
    auto array = parse_npy(content);
    if (!array.ok()) {
      return std::move(array).error().context("array '" + member.name + "'");
    }
    array->name = member.name;
    if (array->name.ends_with(kSuffix)) {
      array->name.resize(array->name.size() - kSuffix.size());
    }
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<std::vector<Array>> parse(const SharedBytes& file) {
  if (has_zip_magic(file.bytes)) return parse_npz(file);
  if (has_npy_magic(file.bytes)) {
    KILN_ASSIGN_OR_RETURN(auto array, parse_npy(file));
    std::vector<Array> arrays;
    arrays.push_back(std::move(array));
    return arrays;
  }
  return Error{ErrorCode::kCorruptData, "it is neither a .npy nor a .npz file"};
}

// Data as NumPy holds it: 4-bit integers become a byte each, in `storage`.
std::span<const std::byte> stored_data(const Array& array, std::vector<std::byte>& storage) {
  if (bits_of(array.type.dtype) != 4) return array.data.bytes;
  const auto count = static_cast<size_t>(array.type.elements());
  storage.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto pair = static_cast<unsigned>(array.data.bytes[i / 2]);
    const unsigned value = i % 2 == 0 ? pair & 0xF : pair >> 4;
    const bool negative = array.type.dtype == DType::kI4 && value >= 8;
    storage[i] = static_cast<std::byte>(negative ? value | 0xF0 : value);
  }
  return storage;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

Result<std::vector<Array>> parse_arrays(const SharedBytes& file, std::string_view name) {
  auto arrays = parse(file);
  if (!arrays.ok()) return std::move(arrays).error().context("read '" + std::string(name) + "'");
  return arrays;
}

Result<std::vector<Array>> read_arrays(const std::filesystem::path& path) {
  KILN_ASSIGN_OR_RETURN(const auto file, map_file(path));
  return parse_arrays(file, path.string());
}

Result<> write_npy(const std::filesystem::path& path, const Array& array) {
  std::vector<std::byte> storage;
  const std::string header = print_header(array.type);
  const std::span<const std::byte> pieces[] = {bytes_of(header), stored_data(array, storage)};
  return write_file_atomically(path, pieces);
}

Result<> write_npz(const std::filesystem::path& path, std::span<const Array> arrays) {
  std::vector<std::string> headers(arrays.size());
  std::vector<std::vector<std::byte>> storage(arrays.size());
  std::vector<ZipWriter::Content> contents;
  for (size_t i = 0; i < arrays.size(); ++i) {
    headers[i] = print_header(arrays[i].type);
    contents.push_back(
        {arrays[i].name + ".npy", {bytes_of(headers[i]), stored_data(arrays[i], storage[i])}});
  }
  auto writer = ZipWriter::lay_out(contents);
  if (!writer.ok()) return std::move(writer).error().context("write '" + path.string() + "'");
  return write_file_atomically(path, writer->pieces);
}

}  // namespace kiln::npy
