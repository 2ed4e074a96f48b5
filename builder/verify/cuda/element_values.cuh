// Elements of a tensor as doubles. dtype: 0 f32, 1 f16, 2 bf16, 3 f8e4m3fn, whose results are f32.

// Four bits of exponent, biased by 7, three of mantissa; all ones is NaN, there is no infinity.
__device__ static double code_value(unsigned char bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double sign = bits & 0x80 ? -1 : 1;
  if ((bits & 0x7F) == 0x7F) return __longlong_as_double(0x7FF8000000000000ll);
  if (exponent == 0) return sign * mantissa / 512;
  return sign * scalbn(static_cast<double>(8 + mantissa), exponent - 10);
}

__device__ static double load(const void* data, long long i, int dtype) {
  if (dtype == 0) return static_cast<const float*>(data)[i];
  if (dtype == 3) return code_value(static_cast<const unsigned char*>(data)[i]);
  const unsigned short bits = static_cast<const unsigned short*>(data)[i];
  float value;
  if (dtype == 1) {
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  } else {
    value = __uint_as_float(static_cast<unsigned>(bits) << 16);
  }
  return value;
}

__device__ static void store(void* data, long long i, int dtype, double result) {
  const float value = static_cast<float>(result);
  if (dtype == 0 || dtype == 3) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  unsigned short bits;
  if (dtype == 1) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  } else {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  static_cast<unsigned short*>(data)[i] = bits;
}
