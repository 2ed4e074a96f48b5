#include "builder/tactics/accuracy.h"

#include <algorithm>

namespace kiln {

AccuracyPolicy accuracy_for(DType dtype, bool tf32) {
  switch (tf32 && dtype == DType::kF32 ? DType::kBF16 : dtype) {
    case DType::kF64:
      return {1e-9, 1e-10};
    case DType::kF16:
      return {1e-2, 2e-3};
    case DType::kBF16:
      return {4e-2, 1e-2};
    case DType::kF32:
      return {1e-3, 1e-4};
    default:
      return is_float(dtype) ? AccuracyPolicy{0.25, 0.0625} : AccuracyPolicy{0, 0};
  }
}

namespace {

// Of a row's scale: a step of the type at the largest of a row's elements. What lies there on the
// way may be a step off and then be taken from something as large.
double step_on_the_way(DType dtype) {
  constexpr double kLargest = 8;  // times the scale
  if (dtype == DType::kBF16) return kLargest * 0x1p-8;
  return dtype == DType::kF16 ? kLargest * 0x1p-11 : 0;
}

// The tensor cores' sums of such products have far fewer bits than f32, yet more than the codes.
bool multiplies_codes(const ir::Graph& body, const ir::Node& node) {
  return std::holds_alternative<ir::MatMul>(node.op) &&
         bits_of(body.type(node.inputs[0]).dtype) == 8 && is_float(body.type(node.inputs[0]).dtype);
}

}  // namespace

AccuracyPolicy accuracy_within(const ir::Graph& body, DType output, bool tf32) {
  AccuracyPolicy loosest = accuracy_for(output, tf32);
  if (!is_float(output)) return loosest;
  double step = 0;
  for (ir::NodeId id : body.topological_order()) {
    if (!multiplies_codes(body, body.node(id))) continue;
    const AccuracyPolicy sums = accuracy_for(DType::kBF16, tf32);
    if (sums.rtol > loosest.rtol) loosest = sums;
  }
  for (ir::NodeId id : body.topological_order()) {
    for (ir::ValueId value : body.node(id).outputs) {
      const AccuracyPolicy policy = accuracy_for(body.type(value).dtype, tf32);
      if (policy.rtol > loosest.rtol) loosest = policy;
      if (!body.is_output(value)) step = std::max(step, step_on_the_way(body.type(value).dtype));
    }
  }
  loosest.atol = std::max(loosest.atol, step);
  return loosest;
}

}  // namespace kiln
