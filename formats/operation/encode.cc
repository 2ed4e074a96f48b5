// The binary form: name, number of attributes, then for each key, type (the variant's index) and
// value; all in ByteWriter's terms.
#include "formats/binary/byte_stream.h"
#include "formats/operation/operation.h"

namespace kiln {
namespace {

void write(ByteWriter& out, int64_t value) { out.signed_int(value); }
void write(ByteWriter& out, double value) { out.real(value); }
void write(ByteWriter& out, const std::string& value) { out.string(value); }
template <class T>
void write(ByteWriter& out, const std::vector<T>& list) {
  out.unsigned_int(list.size());
  for (const T& item : list) write(out, item);
}

void read(ByteReader& in, int64_t& value) { value = in.signed_int(); }
void read(ByteReader& in, double& value) { value = in.real(); }
void read(ByteReader& in, std::string& value) { value = in.string(); }
template <class T>
void read(ByteReader& in, std::vector<T>& list) {
  list.resize(in.count(std::is_same_v<T, double> ? 8 : 1));
  for (T& item : list) read(in, item);
}

template <size_t kIndex = 0>
AttributeValue read_value(ByteReader& in, uint8_t type) {
  if constexpr (kIndex == std::variant_size_v<AttributeValue>) {
    in.fail();
    return int64_t{0};
  } else {
    if (type != kIndex) return read_value<kIndex + 1>(in, type);
    std::variant_alternative_t<kIndex, AttributeValue> value{};
    read(in, value);
    return value;
  }
}

}  // namespace

std::string encode(const Operation& operation) {
  ByteWriter out;
  out.string(operation.name);
  out.unsigned_int(operation.attributes.size());
  for (const auto& [key, value] : operation.attributes) {
    out.string(key);
    out.byte(static_cast<uint8_t>(value.index()));
    std::visit([&](const auto& typed) { write(out, typed); }, value);
  }
  return out.take();
}

Result<Operation> decode_operation(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Operation operation;
  operation.name = in.string();
  const uint64_t count = in.count(3);  // a key of no letters, a type, a value of one byte
  operation.attributes.reserve(count);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    std::string key = in.string();
    const uint8_t type = in.byte();
    AttributeValue value = read_value(in, type);
    if (i > 0 && operation.attributes.back().first >= key) {
      return Error{ErrorCode::kCorruptData, "operation: attribute '" + key +
                                                "' is out of order; expected sorted, unique names"};
    }
    operation.attributes.emplace_back(std::move(key), std::move(value));
  }
  if (!in.done()) {
    return Error{ErrorCode::kCorruptData,
                 "operation: bad byte near offset " + std::to_string(in.position()) + " of " +
                     std::to_string(bytes.size()) + "; the file is damaged"};
  }
  return operation;
}

}  // namespace kiln
