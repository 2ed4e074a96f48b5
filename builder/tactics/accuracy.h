// AccuracyPolicy: how far a result may be from the reference.
#pragma once
#include "builder/ir/graph.h"
#include "formats/tensor_type.h"

namespace kiln {

// |got - want| <= atol * scale + rtol * |want| + noise, where scale is the root mean square of the
// row's finite reference values, or 1 if that is smaller.
struct AccuracyPolicy {
  double rtol = 1e-3, atol = 1e-4;
  double noise = 0;  // absolute: what rounding alone does to the value
};

// For values kept in `dtype`; integers must be equal. `tf32`: f32 results of products whose
// operands are rounded to TF32. It has f16's 10 bits of mantissa, but rounds each term of a sum
// rather than the sum: about 4e-4 of a row's scale by its deviation, so that f16's bounds would be
// met by chance and bf16's are taken.
AccuracyPolicy accuracy_for(DType dtype, bool tf32 = false);

// For an output of a region: what its body keeps in a narrower float on the way was rounded there,
// and a kernel that sums in another order, or does without that rounding, is as right. Then the
// narrower type's policy holds.
AccuracyPolicy accuracy_within(const ir::Graph& body, DType output, bool tf32 = false);

}  // namespace kiln
