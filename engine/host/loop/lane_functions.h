// Scalar functions over blocks of lanes, and reductions of such blocks.
#pragma once
#include <cstdint>

#include "engine/host/lanes.h"
#include "formats/loop_ir/scalar_function.h"

namespace kiln::host {

// A block of lanes, or one lane that stands for all.
struct Operand {
  const void* lanes = nullptr;
  bool uniform = false;
};

// out[i] = fn(args[i]...) for `count` lanes. `dtypes` are the arguments'; out may be an argument's
// own lanes where the lanes have one size.
using LaneFunction = void (*)(const Operand* args, const DType* dtypes, void* out, int64_t count);
// REQUIRES: result_type(fn, dtypes) has a value.
LaneFunction lane_function(ScalarFn fn, const DType* dtypes);

// Accumulators take 8 bytes a lane. Sums and products of floats accumulate in f64.
struct Reduction {
  void (*start)(void* accumulators, int64_t count);
  // accumulators[i] = op(accumulators[i], x[i])
  void (*add_lanes)(void* accumulators, Operand x, int64_t count);
  // accumulators[0] = op(accumulators[0], x[0], x[1], ...), in an order that depends on count alone
  void (*add_block)(void* accumulator, Operand x, int64_t count);
  void (*finish)(const void* accumulators, DType dtype, void* lanes, int64_t count);
};
Reduction reduction(ReduceFn fn, DType dtype);

}  // namespace kiln::host
