// Lanes: the few types in which the host computes, and how blocks of elements get in and out of
// them. A lane holds every value of its dtypes exactly.
#pragma once
#include <cstddef>
#include <cstdint>

#include "formats/tensor_type.h"

namespace kiln::host {

enum class Lane : uint8_t {
  kF32,   // float: f32, f16, bf16, 8-bit floats
  kF64,   // double
  kI64,   // int64_t: every integer type, extended; u64 as its bits
  kBool,  // uint8_t, 0 or 1
};
Lane lane_of(DType dtype);
size_t lane_bytes(Lane lane);

// lanes[i] = element first + i * stride of `data`.
void load_lanes(DType dtype, const void* data, int64_t first, int64_t stride, int64_t count,
                void* lanes);
// lanes[i] = element offsets[i].
void load_lanes_at(DType dtype, const void* data, const int64_t* offsets, int64_t count,
                   void* lanes);
// Rounds to nearest even; `saturate` is for 8-bit floats. Elements of 4-bit types share bytes:
// one thread at a time.
void store_lanes(DType dtype, void* data, int64_t first, int64_t stride, int64_t count,
                 const void* lanes, bool saturate = true);
// ONNX's Cast between lanes of two dtypes; the result is a value that `to` can hold.
void cast_lanes(DType from, const void* in, DType to, void* out, int64_t count,
                bool saturate = true);

}  // namespace kiln::host
