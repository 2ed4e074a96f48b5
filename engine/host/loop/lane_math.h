// f32 functions without branches or table look-ups, so that loops over them vectorise. Errors are
// a few units in the last place over the whole range; NaN in gives NaN out.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::host {

inline float exp_f32(float x) {
  // Beyond these e^x is infinite or rounds to 0; NaN passes through both.
  const float low = -104.0f > x ? -104.0f : x;
  const float bounded = 89.0f < low ? 89.0f : low;
  // x = n ln 2 + r with |r| <= ln 2 / 2; adding and subtracting 1.5 * 2^23 rounds to an integer.
  constexpr float kRound = 12582912.0f;
  const float n = (bounded * 1.44269504088896341f + kRound) - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = (p * r * r + r) + 1.0f;
  // 2^n in two factors, so that subnormal results round once and the largest do not overflow.
  const int32_t exponent = static_cast<int32_t>(n == n ? n : 0.0f);
  const int32_t half = exponent >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23);
  const float b = std::bit_cast<float>((exponent - half + 127) << 23);
  return y * a * b;
}

inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// Odd rational approximations on the interval outside of which the result rounds to +-1, and is
// exactly that: 1 + erf(-infinity) must be 0.
inline float tanh_f32(float x) {
  constexpr float kEnd = 7.90531110763549805f;
  const float low = -kEnd > x ? -kEnd : x;
  const float v = kEnd < low ? kEnd : low;
  const float s = v * v;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return std::fabs(v) == kEnd ? std::copysign(1.0f, v) : v * p / q;
}

inline float erf_f32(float x) {
  constexpr float kEnd = 3.832506856900711f;
  const float low = -kEnd > x ? -kEnd : x;
  const float v = kEnd < low ? kEnd : low;
  const float s = v * v;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return std::fabs(v) == kEnd ? std::copysign(1.0f, v) : v * p / q;
}

}  // namespace kiln::host
