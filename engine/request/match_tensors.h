// A caller's tensors put into the engine's order.
#pragma once
#include <span>
#include <vector>

#include "engine/tensor.h"
#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

// One pointer for each of `wanted`. A tensor with a name is matched by it, one without by its
// position. `kind` is "input" or "output". kInvalidArgument lists what the engine has.
Result<std::vector<const Tensor*>> match_tensors(std::span<const Tensor> given,
                                                 const std::vector<plan::IoTensor>& wanted,
                                                 const char* kind);

}  // namespace kiln
