#include "builder/tactics/accuracy.h"

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

AccuracyPolicy accuracy_within(const ir::Graph& body, DType output, bool tf32) {
  AccuracyPolicy loosest = accuracy_for(output, tf32);
  if (!is_float(output)) return loosest;
  for (ir::NodeId id : body.topological_order()) {
    for (ir::ValueId value : body.node(id).outputs) {
      const AccuracyPolicy policy = accuracy_for(body.type(value).dtype, tf32);
      if (policy.rtol > loosest.rtol) loosest = policy;
    }
  }
  return loosest;
}

}  // namespace kiln
