#include "builder/driver/engine_accuracy.h"

namespace kiln {

bool has_narrow_floats(const ir::Graph& graph) {
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const DType dtype = graph.type(ir::ValueId{i}).dtype;
    if (is_float(dtype) && bits_of(dtype) < 32) return true;
  }
  return false;
}

EngineAccuracy engine_accuracy(std::string_view precision, bool narrow_floats) {
  constexpr double kNarrowCosine = 0.999;
  return {precision != "fp32" || narrow_floats ? kNarrowCosine : 0.0};
}

}  // namespace kiln
