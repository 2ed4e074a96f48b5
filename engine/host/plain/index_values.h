// Reading index tensors: i32 or i64, negative values count from the end, anything outside is an
// error of the call.
#pragma once
#include <cstdint>
#include <string>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::host {

inline int64_t index_value(const void* data, DType dtype, int64_t i) {
  return dtype == DType::kI64 ? static_cast<const int64_t*>(data)[i]
                              : static_cast<const int32_t*>(data)[i];
}

inline Error index_error(const char* operation, int64_t index, int64_t extent) {
  return {ErrorCode::kInvalidArgument, std::string(operation) + ": index " + std::to_string(index) +
                                           " is outside of [-" + std::to_string(extent) + ", " +
                                           std::to_string(extent) + ")"};
}

// Negative where the index is out of range.
inline int64_t normalised_index(int64_t index, int64_t extent) {
  if (index < 0) index += extent;
  return index < extent ? index : -1;
}

}  // namespace kiln::host
