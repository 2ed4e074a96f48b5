#include "builder/import/onnx/node_context.h"

#include <algorithm>

#include "builder/import/onnx/data_type.h"
#include "builder/import/onnx/importer.h"
#include "formats/onnx/model.h"

namespace kiln::onnx_import {
namespace {

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

HostTensor host_tensor(const onnx::Tensor& tensor) { return {tensor.type, tensor.data}; }

}  // namespace

NodeContext::NodeContext(Importer& importer, Scope& scope, const onnx::Node& node, int64_t opset,
                         std::vector<std::optional<ValueId>> inputs, std::string name,
                         std::vector<std::string> origins)
    : Emitter(*scope.graph, importer.constants(), std::move(name), std::move(origins)),
      importer_(&importer),
      scope_(&scope),
      node_(&node),
      opset_(opset),
      inputs_(std::move(inputs)) {}

size_t NodeContext::output_count() const { return node_->outputs.size(); }

bool NodeContext::wants(size_t output) const {
  return output < output_count() && !node_->outputs[output].empty();
}

ValueId NodeContext::input(size_t i) {
  if (has(i)) return *inputs_[i];
  (void)fail("input " + std::to_string(i) + " is missing");
  return kNoValue;
}

std::vector<ValueId> NodeContext::inputs() {
  std::vector<ValueId> values;
  for (size_t i = 0; i < inputs_.size(); ++i) values.push_back(input(i));
  return values;
}

bool NodeContext::has_attribute(std::string_view name) const {
  return onnx::find_attribute(*node_, name) != nullptr;
}

template <class T>
const T* NodeContext::attribute(std::string_view name, const char* expected) {
  const onnx::Attribute* found = onnx::find_attribute(*node_, name);
  if (!found) return nullptr;
  const T* value = std::get_if<T>(&found->value);
  if (!value) {
    (void)fail("attribute '" + std::string(name) + "' is of kind " +
               std::string(onnx::to_string(onnx::kind_of(*found))) + ", expected " + expected);
  }
  return value;
}

int64_t NodeContext::get_int(std::string_view name, int64_t fallback) {
  const auto* value = attribute<int64_t>(name, "int");
  return value ? *value : fallback;
}

double NodeContext::get_float(std::string_view name, double fallback) {
  const auto* value = attribute<float>(name, "float");
  return value ? static_cast<double>(*value) : fallback;
}

std::string NodeContext::get_string(std::string_view name, std::string_view fallback) {
  const auto* value = attribute<std::string>(name, "string");
  return value ? *value : std::string(fallback);
}

std::vector<int64_t> NodeContext::get_ints(std::string_view name) {
  const auto* value = attribute<std::vector<int64_t>>(name, "ints");
  return value ? *value : std::vector<int64_t>();
}

std::vector<double> NodeContext::get_floats(std::string_view name) {
  const auto* value = attribute<std::vector<float>>(name, "floats");
  return value ? std::vector<double>(value->begin(), value->end()) : std::vector<double>();
}

std::vector<std::string> NodeContext::get_strings(std::string_view name) {
  const auto* value = attribute<std::vector<std::string>>(name, "strings");
  return value ? *value : std::vector<std::string>();
}

std::optional<HostTensor> NodeContext::get_tensor(std::string_view name) {
  const auto* value = attribute<onnx::Tensor>(name, "tensor");
  if (!value) return std::nullopt;
  return host_tensor(*value);
}

const onnx::Graph* NodeContext::get_graph(std::string_view name) {
  const auto* value = attribute<std::shared_ptr<const onnx::Graph>>(name, "graph");
  return value ? value->get() : nullptr;
}

DType NodeContext::get_dtype(std::string_view name, DType fallback) {
  if (!has_attribute(name)) return fallback;
  const int64_t number = get_int(name, 0);
  if (const auto dtype = dtype_of_onnx(number)) return *dtype;
  (void)unsupported("attribute '" + std::string(name) + "' asks for the element type " +
                    onnx_type_name(number) + ", which Kiln does not have");
  return fallback;
}

Result<HostTensor> NodeContext::known(size_t input, std::string_view what) {
  const ValueId value = this->input(input);
  if (failed()) return *error();
  if (auto tensor = constant_of(value)) return *std::move(tensor);
  const auto names = Constants::inputs_behind(graph(), value);
  if (names.empty()) return unsupported(std::string(what) + " cannot be computed when building");
  importer_->need_values(*scope_, names);
  return unsupported(std::string(what) + " must be known when building, but depends on " +
                     list(names) + "; fix that input's value for this shape point");
}

Result<std::vector<int64_t>> NodeContext::known_ints(size_t input, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(const HostTensor tensor, known(input, what));
  if (is_float(tensor.type.dtype)) {
    return fail(std::string(what) + " is " + to_string(tensor.type) + ", expected integers");
  }
  return to_ints(tensor);
}

Result<std::vector<double>> NodeContext::known_floats(size_t input, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(const HostTensor tensor, known(input, what));
  return to_doubles(tensor);
}

Result<int64_t> NodeContext::known_int(size_t input, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(const auto values, known_ints(input, what));
  if (values.size() == 1) return values[0];
  return fail(std::string(what) + " has " + std::to_string(values.size()) +
              " elements, expected 1");
}

Result<std::vector<int64_t>> NodeContext::axes(size_t input, int64_t since, int64_t rank) {
  std::vector<int64_t> axes = opset_ < since ? get_ints("axes") : std::vector<int64_t>();
  if (opset_ >= since && has(input)) {
    KILN_ASSIGN_OR_RETURN(axes, known_ints(input, "axes"));
  }
  return normalise_axes(std::move(axes), rank);
}

Result<int64_t> NodeContext::axis(std::string_view attribute, int64_t fallback, int64_t rank) {
  return normalise_axis(get_int(attribute, fallback), rank);
}

Result<int64_t> NodeContext::normalise_axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return fail("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
}

Result<std::vector<int64_t>> NodeContext::normalise_axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    KILN_ASSIGN_OR_RETURN(axis, normalise_axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end()) {
    return fail("axis " + std::to_string(*twice) + " is given twice");
  }
  return axes;
}

Result<> NodeContext::require_same_dtype(std::span<const ValueId> values) {
  if (failed()) return *error();
  for (size_t i = 1; i < values.size(); ++i) {
    if (dtype(values[i]) == dtype(values[0])) continue;
    return fail("input " + std::to_string(i) + " is " + to_string(type(values[i])) +
                ", input 0 is " + to_string(type(values[0])) + "; ONNX wants one type");
  }
  return Ok();
}

}  // namespace kiln::onnx_import
