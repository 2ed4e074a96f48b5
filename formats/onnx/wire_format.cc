#include "formats/onnx/wire_format.h"

#include <cstdint>
#include <optional>

namespace kiln::onnx {
namespace {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// Nullopt at the end of the bytes or after ten of them.
std::optional<uint64_t> read_varint(std::span<const std::byte>& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = static_cast<uint64_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

// Bytes of the field's value that follow; nullopt when that cannot be told.
std::optional<uint64_t> value_size(uint64_t wire_type, std::span<const std::byte>& rest) {
  switch (wire_type) {
    case kVarint:
      return read_varint(rest) ? std::optional<uint64_t>(0) : std::nullopt;
    case kFixed64:
      return 8;
    case kLengthDelimited:
      return read_varint(rest);
    case kFixed32:
      return 4;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string explain_parse_failure(std::span<const std::byte> bytes) {
  std::span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    const std::string at = " at byte " + std::to_string(bytes.size() - rest.size());
    const auto tag = read_varint(rest);
    if (!tag || *tag >> 3 == 0) return "there is no field" + at;
    const std::string field = "field " + std::to_string(*tag >> 3) + at;
    const auto size = value_size(*tag & 7, rest);
    if (!size) return field + " has no value that protobuf knows";
    if (*size > rest.size()) {
      return field + " claims " + std::to_string(*size) + " bytes, " + std::to_string(rest.size()) +
             " are left; the file may be cut short";
    }
    rest = rest.subspan(static_cast<size_t>(*size));
  }
  return "a message inside of it is damaged or nests deeper than 100 levels";
}

}  // namespace kiln::onnx
