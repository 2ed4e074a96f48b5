#include "builder/tactics/spell_out/formula.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "builder/verify/reference.h"

namespace kiln {

using ir::Graph;
using ir::ValueId;

ValueId Formula::emit(ir::Op op, std::vector<ValueId> inputs) {
  if (error_) return inputs.front();
  auto made = graph_.add_node(node_.name, node_.origins, std::move(op), inputs);
  if (made.ok()) return graph_.result(*made);
  error_ = std::move(made).error();
  return inputs.front();
}

void Formula::refuse(std::string reason) {
  if (!error_) error_ = Error{ErrorCode::kUnsupported, std::move(reason)};
}

ValueId Formula::reshape(ValueId x, Shape shape) {
  return type(x).shape == shape ? x : emit(ir::Reshape{std::move(shape)}, {x});
}

ValueId Formula::slice(ValueId x, size_t axis, int64_t start, int64_t size, int64_t step) {
  const Shape& shape = type(x).shape;
  ir::Slice slice{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
  if (start == 0 && size == shape[axis] && step == 1) return x;
  slice.starts[axis] = start;
  slice.sizes[axis] = size;
  slice.steps[axis] = step;
  return emit(std::move(slice), {x});
}

ValueId Formula::constant_bytes(TensorType type, std::vector<std::byte> bytes) {
  return graph_.add_constant("", std::move(type), SharedBytes::take(std::move(bytes)));
}

ValueId Formula::number(DType dtype, double value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  const HostTensor wide{{DType::kF64, {}}, SharedBytes::take(std::move(bytes))};
  const TensorType type{dtype, {}};
  auto cast = run_reference_op(ir::Cast{dtype}, std::span(&wide, 1), std::span(&type, 1));
  if (cast.ok()) return graph_.add_constant("", type, cast->front().bytes);
  refuse(cast.error().message);
  return graph_.add_constant("", wide.type, wide.bytes);
}

ValueId Formula::lowest(DType dtype) {
  if (is_float(dtype)) return number(dtype, -std::numeric_limits<double>::infinity());
  if (dtype == DType::kI64) {
    return constant(dtype, {}, std::vector{std::numeric_limits<int64_t>::min()});
  }
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32;
  return number(dtype, is_signed ? -std::ldexp(1.0, bits_of(dtype) - 1) : 0.0);
}

ValueId Formula::highest(DType dtype) {
  if (is_float(dtype)) return number(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::kI64) {
    return constant(dtype, {}, std::vector{std::numeric_limits<int64_t>::max()});
  }
  if (dtype == DType::kU64) {
    return constant(dtype, {}, std::vector{std::numeric_limits<uint64_t>::max()});
  }
  if (dtype == DType::kBool) return number(dtype, 1);
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32;
  return number(dtype, std::ldexp(1.0, bits_of(dtype) - (is_signed ? 1 : 0)) - 1);
}

ValueId Formula::wrapped(ValueId index, int64_t extent) {
  const ValueId zero = number(DType::kI64, 0);
  const ValueId size = number(DType::kI64, static_cast<double>(extent));
  const ValueId from_end = apply(ScalarFn::kAdd, {index, size});
  return apply(ScalarFn::kWhere, {apply(ScalarFn::kLess, {index, zero}), from_end, index});
}

ValueId Formula::plus(ValueId sum, ValueId index, int64_t stride) {
  const ValueId factor = number(DType::kI64, static_cast<double>(stride));
  return apply(ScalarFn::kAdd, {sum, apply(ScalarFn::kMul, {index, factor})});
}

ValueId Formula::iota(size_t rank, size_t axis, int64_t extent) {
  Shape shape(rank, 1);
  shape[axis] = extent;
  std::vector<int64_t> values(static_cast<size_t>(extent));
  std::iota(values.begin(), values.end(), int64_t{0});
  return constant(DType::kI64, std::move(shape), values);
}

Result<Graph> write_formulas(const Graph& body, const WriteFormula& write) {
  Graph result;
  std::map<ValueId, ValueId> map;
  const auto mapped = [&](ValueId id) {
    if (const auto found = map.find(id); found != map.end()) return found->second;
    const ir::Value& value = body.value(id);
    return map[id] = result.add_constant(value.name, value.type, *value.constant);
  };
  for (ValueId id : body.inputs()) {
    map[id] = result.add_input(body.value(id).name, body.type(id));
  }
  for (ir::NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(mapped(input));
    Formula formula(result, node);
    std::vector<ValueId> outputs = write(formula, node, inputs);
    if (formula.error()) return *formula.error();
    if (outputs.empty()) {
      std::vector<TensorType> types;
      for (ValueId output : node.outputs) types.push_back(body.type(output));
      const ir::NodeId copy =
          result.add_typed_node(node.name, node.origins, node.op, std::move(inputs), types);
      outputs = result.node(copy).outputs;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (result.type(outputs[i]) != body.type(node.outputs[i])) {
        return Error{ErrorCode::kInternal, "the formula of node '" + node.name + "' yields " +
                                               to_string(result.type(outputs[i])) + ", expected " +
                                               to_string(body.type(node.outputs[i]))};
      }
      map[node.outputs[i]] = outputs[i];
    }
  }
  for (ValueId id : body.outputs()) result.mark_output(mapped(id));
  return result;
}

}  // namespace kiln
