// The one place where values change their dtype on the host: narrow floats, 4-bit integers, and
// ONNX's Cast with Kiln's policy where the standard leaves the result open: float to integer
// truncates and saturates, but to 4 bits keeps the low ones, as ONNX's own tests do; NaN becomes 0;
// integer to integer wraps; everything rounds to nearest even, once.
#pragma once
#include <cstdint>

#include "formats/narrow_floats.h"
#include "formats/tensor_type.h"

namespace kiln::host {

// REQUIRES: an 8-bit float type. Without `saturate`, values out of range become infinity where the
// type has one and NaN otherwise (ONNX's table for Cast).
float f8_to_float(DType dtype, uint8_t value);
uint8_t float_to_f8(DType dtype, float value, bool saturate = true);

// The f32 from which rounding to any float of at most 16 bits gives the same as from `value`.
float round_to_odd(double value);

// The low bits of `value`, extended to 64 bits as the integer type has it (u64: unchanged bits).
int64_t wrap_integer(DType dtype, int64_t value);
// Truncated and saturated to the integer type; NaN is 0. The bits of a u64 for u64.
int64_t saturate_to_integer(DType dtype, double value);

// Element i of dense 4-bit data, sign- or zero-extended.
int8_t load_4bit(DType dtype, const void* data, int64_t index);
void store_4bit(void* data, int64_t index, int8_t value);

// ONNX's Cast of `count` dense elements. Buffers may not overlap.
void convert(DType from, const void* in, DType to, void* out, int64_t count, bool saturate = true);

}  // namespace kiln::host
