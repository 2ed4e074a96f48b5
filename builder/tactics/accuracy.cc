#include "builder/tactics/accuracy.h"

namespace kiln {

AccuracyPolicy accuracy_for(DType dtype, bool tf32) {
  switch (tf32 && dtype == DType::kF32 ? DType::kBF16 : dtype) {
    case DType::kF64:
      return {1e-9, 1e-10};
    case DType::kF16:
      return {1e-2, 2e-3};
    case DType::kBF16:
      return {4e-2, 1e-2};
    case DType::kF32:
      return {1e-3, 1e-4};
    default:
      return is_float(dtype) ? AccuracyPolicy{0.25, 0.0625} : AccuracyPolicy{0, 0};
  }
}

}  // namespace kiln
