// AccuracyPolicy: how far a result may be from the reference.
#pragma once
#include "formats/tensor_type.h"

namespace kiln {

// |got - want| <= atol * scale + rtol * |want| + noise, where scale is the root mean square of the
// row's finite reference values, or 1 if that is smaller.
struct AccuracyPolicy {
  double rtol = 1e-3, atol = 1e-4;
  double noise = 0;  // absolute: what rounding alone does to the value
};

// For values kept in `dtype`; integers must be equal.
AccuracyPolicy accuracy_for(DType dtype);

}  // namespace kiln
