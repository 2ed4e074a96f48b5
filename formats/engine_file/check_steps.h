// The part of check_plan that looks at steps and their buffers.
#pragma once
#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln::plan {

// A dtype that exists, at most kMostRank extents, none negative, at most kMostElements elements:
// after this TensorType::bytes() cannot overflow.
Result<> check_type(const TensorType& type);

// REQUIRES: the point's input and output types and the plan's constants are checked.
Result<> check_steps(const Plan& plan, const ShapePoint& point);

}  // namespace kiln::plan
