// Steps and tensors in words.
#pragma once
#include <string>

#include "formats/engine_file/plan.h"

namespace kiln::inspect {

// The region of a step; "" if it has none.
std::string region_name(const plan::ShapePoint& point, size_t step);

// "input", "arena", ... of a buffer; the tensor's or constant's name where it has one, else
// "weights@offset", or "@offset" in the arena.
std::string space_name(plan::BufferRef::Space space);
std::string constant_name(const plan::Constant& constant);
std::string buffer_name(const plan::Plan& plan, const plan::BufferRef& buffer);

// "f32[Bx3x224x224]": the batch axis reads B where the extent is the point's batch, 2B for twice
// it.
std::string type_text(const TensorType& type, int32_t batch_axis, int64_t batch);

// Kind and what is called: "host matmul", "copy", ...
std::string action_kind(const plan::StepAction& action);
// The operation with its attributes; long or binary ones are shortened unless `full`. "" where a
// step has none.
std::string operation_text(const plan::Plan& plan, const plan::StepAction& action, bool full);

// One line a step, nested steps indented; with `explain` all attributes and loop kernels.
std::string steps_text(const plan::Plan& plan, const plan::ShapePoint& point, bool explain);

}  // namespace kiln::inspect
