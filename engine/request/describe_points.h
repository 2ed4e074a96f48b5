// Shape points and their types in words, for error messages.
#pragma once
#include <string>

#include "formats/engine_file/plan.h"

namespace kiln {

// "f32[Bx3x224x224]": the batch axis reads B (or 2B for twice as many); -1: no batch axis.
std::string describe_type(const TensorType& type, int32_t batch_axis, int64_t batch);

// "b1 (x f32[1x10]), b8 (x f32[8x10])", the first sixteen.
std::string describe_points(const plan::Plan& plan);

}  // namespace kiln
