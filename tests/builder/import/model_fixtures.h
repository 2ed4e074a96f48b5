// Small ONNX models made in code.
#pragma once
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "formats/onnx/model.h"

namespace kiln::onnx_import {

inline onnx::Attribute attribute(std::string name, onnx::Attribute::Value value) {
  return {std::move(name), std::move(value), ""};
}

inline onnx::Node node(std::string name, std::string op_type, std::vector<std::string> inputs,
                       std::vector<std::string> outputs,
                       std::vector<onnx::Attribute> attributes = {}, std::string domain = "") {
  onnx::Node result;
  result.name = std::move(name);
  result.op_type = std::move(op_type);
  result.domain = std::move(domain);
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  result.attributes = std::move(attributes);
  return result;
}

// An extent as the model declares it: a number, or a symbol.
struct Extent {
  Extent(int64_t number) : dim{number, ""} {}                // NOLINT
  Extent(const char* symbol) : dim{std::nullopt, symbol} {}  // NOLINT
  onnx::Dim dim;
};

inline onnx::ValueInfo value(std::string name, DType dtype, std::initializer_list<Extent> shape) {
  onnx::ValueInfo info;
  info.name = std::move(name);
  info.dtype = dtype;
  info.shape.emplace();
  for (const Extent& extent : shape) info.shape->push_back(extent.dim);
  return info;
}

template <class T>
onnx::Tensor tensor(std::string name, DType dtype, Shape shape, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {std::move(name), {dtype, std::move(shape)}, SharedBytes::take(std::move(bytes))};
}

inline onnx::Model model(std::vector<onnx::ValueInfo> inputs, std::vector<onnx::Node> nodes,
                         std::vector<std::string> outputs, int64_t opset = 18) {
  onnx::Model result;
  result.path = "m.onnx";
  result.ir_version = 8;
  result.opset_imports[""] = opset;
  result.graph.inputs = std::move(inputs);
  result.graph.nodes = std::move(nodes);
  for (std::string& output : outputs) {
    onnx::ValueInfo info;
    info.name = std::move(output);
    result.graph.outputs.push_back(std::move(info));
  }
  return result;
}

}  // namespace kiln::onnx_import
