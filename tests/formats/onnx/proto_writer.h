// Writes ONNX's protobuf messages byte by byte, so that tests can also write wrong ones and need
// no protobuf. A Message is the bytes of one message; field numbers are those of onnx.proto.
#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/read_model.h"
#include "tests/scratch_folder.h"

namespace kiln::onnx::testing {

using kiln::testing::ScratchFolder;

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

class Message {
 public:
  Message& integer(int field, int64_t value) {
    bytes_ += varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    bytes_ += varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& fixed32(int field, float value) {
    bytes_ += varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }
  std::span<const std::byte> span() const {
    return {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::string bytes_;
};

// The bytes of values in memory, for raw_data and for packed float_data and double_data.
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}
// Packed int32_data, int64_data and uint64_data.
inline std::string packed(std::initializer_list<int64_t> values) {
  std::string bytes;
  for (int64_t value : values) bytes += varint(static_cast<uint64_t>(value));
  return bytes;
}

// TensorProto without data.
inline Message tensor(std::string_view name, int type, std::initializer_list<int64_t> dims) {
  Message proto;
  for (int64_t dim : dims) proto.integer(1, dim);
  return proto.integer(2, type).text(8, name);
}
inline constexpr int kRawData = 9, kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7,
                     kDoubleData = 10, kUint64Data = 11;

inline Message external_entry(std::string_view key, std::string_view value) {
  return Message().text(1, key).text(2, value);
}

// ValueInfoProto of a float tensor.
inline Message value(std::string_view name, std::initializer_list<int64_t> dims) {
  Message shape;
  for (int64_t dim : dims) shape.message(1, Message().integer(1, dim));
  const Message type = Message().message(1, Message().integer(1, 1).message(2, shape));
  return Message().text(1, name).message(2, type);
}

inline Message node(std::string_view name, std::string_view op,
                    std::initializer_list<std::string_view> inputs,
                    std::initializer_list<std::string_view> outputs) {
  Message proto;
  for (auto input : inputs) proto.text(1, input);
  for (auto output : outputs) proto.text(2, output);
  return proto.text(3, name).text(4, op);
}
inline constexpr int kNodeAttribute = 5, kNodeDomain = 7;

inline Message int_attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).integer(3, value).integer(20, 2);
}
inline Message float_attribute(std::string_view name, float value) {
  return Message().text(1, name).fixed32(2, value).integer(20, 1);
}
inline Message graph_attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).integer(20, 5);
}
inline Message reference_attribute(std::string_view name, std::string_view reference) {
  return Message().text(1, name).text(21, reference).integer(20, 2);
}

// GraphProto in progress: fields in any order, as protobuf allows.
inline Message graph(std::initializer_list<Message> nodes,
                     std::initializer_list<std::string_view> inputs,
                     std::initializer_list<std::string_view> outputs) {
  Message proto;
  for (const Message& n : nodes) proto.message(1, n);
  for (auto input : inputs) proto.message(11, value(input, {2}));
  for (auto output : outputs) proto.message(12, value(output, {2}));
  return proto.text(2, "g");
}
inline constexpr int kGraphInitializer = 5, kGraphSparseInitializer = 15;

inline Message opset(std::string_view domain, int64_t version) {
  return Message().text(1, domain).integer(2, version);
}
inline constexpr int kModelGraph = 7, kModelOpset = 8, kModelFunction = 25;

// ModelProto of IR version 8 and operator set 17.
inline Message model(const Message& graph) {
  return Message().integer(1, 8).message(kModelOpset, opset("", 17)).message(kModelGraph, graph);
}

// A model that hands on one initializer.
inline Message model_of(const Message& initializer, std::string_view name) {
  return model(graph({node("n", "Identity", {name}, {"y"})}, {}, {"y"})
                   .message(kGraphInitializer, initializer));
}

// FunctionProto in domain "local", operator set 17.
inline Message function(std::string_view name, std::initializer_list<std::string_view> inputs,
                        std::initializer_list<std::string_view> outputs,
                        std::initializer_list<Message> nodes) {
  Message proto;
  proto.text(1, name).text(10, "local");
  for (auto input : inputs) proto.text(4, input);
  for (auto output : outputs) proto.text(5, output);
  for (const Message& n : nodes) proto.message(7, n);
  return proto.message(9, opset("", 17)).message(9, opset("local", 1));
}

// The error of parsing, or "" when it parses.
inline std::string parse_error(const Message& model, const std::filesystem::path& folder = {}) {
  auto result = parse_model(model.span(), folder);
  return result.ok() ? std::string() : result.error().message;
}

}  // namespace kiln::onnx::testing
