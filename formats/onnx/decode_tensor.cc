#include "formats/onnx/decode_tensor.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "formats/onnx/element_type.h"
#include "formats/onnx/tensor_bytes.h"

namespace kiln::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian");

using ::onnx::TensorProto;

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

Result<TensorType> decode_type(const TensorProto& proto, DType dtype) {
  TensorType type{dtype, Shape(proto.dims().begin(), proto.dims().end())};
  const auto count = checked_element_count(type.shape);
  // Leaves room for the byte count in 64 bits.
  if (!count || *count > std::numeric_limits<int64_t>::max() / 64) {
    return corrupt("has dims " + to_string(type.shape) +
                   ", expected none negative and a product below 2^57");
  }
  return type;
}

struct FieldSize {
  const char* name;
  int64_t count;
};

// The typed fields in TypedField's order, then the one that no supported type uses.
std::array<FieldSize, 6> typed_fields(const TensorProto& proto) {
  return {{{"float_data", proto.float_data_size()},
           {"int32_data", proto.int32_data_size()},
           {"int64_data", proto.int64_data_size()},
           {"uint64_data", proto.uint64_data_size()},
           {"double_data", proto.double_data_size()},
           {"string_data", proto.string_data_size()}}};
}

// Refuses data in a typed field other than `allowed` (an index of typed_fields; -1 allows none).
Result<> check_other_fields(const TensorProto& proto, const ElementType& element, int allowed,
                            const std::string& expected) {
  const auto fields = typed_fields(proto);
  for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
    const FieldSize& field = fields[static_cast<size_t>(i)];
    if (i == allowed || field.count == 0) continue;
    return corrupt("has type " + std::string(element.name) + " and " + std::to_string(field.count) +
                   " values in " + field.name + ", expected " + expected);
  }
  return Ok();
}

template <class To, class From>
bool narrow(const From* from, int64_t count, std::byte* to, From lowest, From highest) {
  for (int64_t i = 0; i < count; ++i) {
    if (from[i] < lowest || from[i] > highest) return false;
    const To value = static_cast<To>(from[i]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &value, sizeof(To));
  }
  return true;
}

// int32_data holds every type of 32 bits and less; floats as their bits, two 4-bit ones a value.
bool narrow_int32(const TensorProto& proto, DType dtype, std::byte* to) {
  const int32_t* from = proto.int32_data().data();
  const int64_t count = proto.int32_data_size();
  switch (dtype) {
    case DType::kI8:
      return narrow<int8_t>(from, count, to, -128, 127);
    case DType::kI16:
      return narrow<int16_t>(from, count, to, -32768, 32767);
    case DType::kBool:
      return narrow<uint8_t>(from, count, to, 0, 1);
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return narrow<uint16_t>(from, count, to, 0, 65535);
    case DType::kI32:
      std::memcpy(to, from, static_cast<size_t>(count) * 4);
      return true;
    default:
      return narrow<uint8_t>(from, count, to, 0, 255);
  }
}

bool copy_typed(const TensorProto& proto, const ElementType& element, std::byte* to, size_t size) {
  if (size == 0) return true;
  switch (element.field) {
    case TypedField::kFloat:
      std::memcpy(to, proto.float_data().data(), size);
      return true;
    case TypedField::kInt64:
      std::memcpy(to, proto.int64_data().data(), size);
      return true;
    case TypedField::kDouble:
      std::memcpy(to, proto.double_data().data(), size);
      return true;
    case TypedField::kInt32:
      return narrow_int32(proto, *element.dtype, to);
    case TypedField::kUint64:
      break;
  }
  const uint64_t* from = proto.uint64_data().data();
  if (*element.dtype == DType::kU32) {
    return narrow<uint32_t, uint64_t>(from, proto.uint64_data_size(), to, 0, 0xffffffff);
  }
  std::memcpy(to, from, size);
  return true;
}

Result<SharedBytes> decode_typed(const TensorProto& proto, const ElementType& element,
                                 const TensorType& type) {
  const auto index = static_cast<size_t>(element.field);
  const FieldSize field = typed_fields(proto)[index];
  const int64_t values = bits_of(type.dtype) == 4 ? type.bytes() : type.elements();
  const std::string expected = std::to_string(values) + " in " + field.name + " or " +
                               std::to_string(type.bytes()) + " bytes in raw_data";
  KILN_RETURN_IF_ERROR(check_other_fields(proto, element, static_cast<int>(index), expected));
  if (field.count != values) {
    return corrupt("is " + to_string(type) + " and has " + std::to_string(field.count) +
                   " values, expected " + expected);
  }
  std::vector<std::byte> dense(static_cast<size_t>(type.bytes()));
  if (!copy_typed(proto, element, dense.data(), dense.size())) {
    return corrupt(std::string(field.name) + " has a value out of the range of " + element.name);
  }
  return SharedBytes::take(std::move(dense));
}

Result<uint64_t> parse_number(const std::string& key, const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) {
    return corrupt("external data has " + key + " '" + text + "', expected a number from 0 on");
  }
  return number;
}

Result<SharedBytes> decode_external(const TensorProto& proto, const ElementType& element,
                                    const TensorType& type, ExternalData& external) {
  KILN_RETURN_IF_ERROR(check_other_fields(proto, element, -1, "external data alone"));
  if (!proto.raw_data().empty()) return corrupt("has both raw_data and external data");
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") {
      KILN_ASSIGN_OR_RETURN(range.offset, parse_number("offset", entry.value()));
    }
    if (entry.key() == "length") {
      KILN_ASSIGN_OR_RETURN(range.length, parse_number("length", entry.value()));
    }
  }
  return external.read(range, static_cast<uint64_t>(type.bytes()));
}

Result<SharedBytes> decode_raw(TensorProto& proto, const ElementType& element,
                               const TensorType& type) {
  KILN_RETURN_IF_ERROR(check_other_fields(proto, element, -1, "raw_data alone"));
  if (proto.raw_data().size() != static_cast<size_t>(type.bytes())) {
    return corrupt("is " + to_string(type) + " and has " + std::to_string(proto.raw_data().size()) +
                   " bytes in raw_data, expected " + std::to_string(type.bytes()));
  }
  return own_string(std::move(*proto.mutable_raw_data()));
}

Result<SharedBytes> decode_data(TensorProto& proto, const ElementType& element,
                                const TensorType& type, ExternalData& external) {
  if (proto.has_segment()) {
    return Error{ErrorCode::kUnsupported, "is stored in segments, expected one piece"};
  }
  if (proto.data_location() == TensorProto::EXTERNAL) {
    return decode_external(proto, element, type, external);
  }
  if (proto.has_raw_data() && (type.bytes() > 0 || !proto.raw_data().empty())) {
    return decode_raw(proto, element, type);
  }
  return decode_typed(proto, element, type);
}

}  // namespace

Result<Tensor> decode_tensor(TensorProto& proto, ExternalData& external) {
  KILN_ASSIGN_OR_RETURN(const ElementType* element, supported_element_type(proto.data_type()));
  KILN_ASSIGN_OR_RETURN(TensorType type, decode_type(proto, *element->dtype));
  KILN_ASSIGN_OR_RETURN(SharedBytes data, decode_data(proto, *element, type, external));
  data = aligned(std::move(data), static_cast<size_t>((bits_of(type.dtype) + 7) / 8));
  if (type.dtype == DType::kBool) data = normalized_bools(std::move(data));
  return Tensor{std::move(*proto.mutable_name()), std::move(type), std::move(data)};
}

}  // namespace kiln::onnx
