// Stores f32 values as f16 or bf16 where that was asked for: contractions read narrow operands and
// accumulate in f32; loop regions (norms, softmax, reductions, activations) compute in f32 and
// round as they store. Regions that options.quality keeps stay f32 whole. Inputs and outputs keep
// their types unless io_fp16. Every region's wish and what became of it is recorded.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::precision {

DType narrow_dtype(Precision precision);  // kF32 for kFp32

// REQUIRES: every node is a Region.
Result<bool> choose_precision(ir::Graph& graph, PassContext& context);

}  // namespace kiln::precision
