// Which shape point serves a request.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/staging.h"
#include "engine/tensor.h"
#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

struct Choice {
  size_t point = 0;
  int64_t rows = 0;     // of the request; 0: the point has no batch dimension
  bool padded = false;  // rows < the point's batch
};

// The smallest bucket that holds the request's rows, among the points whose other extents and fixed
// inputs match. `inputs` are in the plan's order. kInvalidArgument says what came closest, found
// and expected, and lists the points.
Result<Choice> choose_point(const plan::Plan& plan, const std::vector<StagingLayout>& staging,
                            std::span<const Tensor* const> inputs);

// The type that output `i` of the chosen point has for this request's rows.
TensorType output_type(const plan::Plan& plan, const Choice& choice, size_t i);

}  // namespace kiln
