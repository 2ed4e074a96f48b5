// Scalar functions of floats alone: op_<name of ScalarFn><type>(arguments).

#define KILN_FLOAT_FUNCTION(name, function) \
  template <class D>                        \
  KILN_DEVICE Reg<D> op_##name(Reg<D> x) {  \
    if constexpr (D::kBits == 64)           \
      return function(x);                   \
    else                                    \
      return function##f(x);                \
  }
KILN_FLOAT_FUNCTION(exp, exp)
KILN_FLOAT_FUNCTION(log, log)
KILN_FLOAT_FUNCTION(sqrt, sqrt)
KILN_FLOAT_FUNCTION(floor, floor)
KILN_FLOAT_FUNCTION(ceil, ceil)
KILN_FLOAT_FUNCTION(round, rint)
KILN_FLOAT_FUNCTION(sin, sin)
KILN_FLOAT_FUNCTION(cos, cos)
KILN_FLOAT_FUNCTION(tan, tan)
KILN_FLOAT_FUNCTION(asin, asin)
KILN_FLOAT_FUNCTION(acos, acos)
KILN_FLOAT_FUNCTION(atan, atan)
KILN_FLOAT_FUNCTION(sinh, sinh)
KILN_FLOAT_FUNCTION(cosh, cosh)
KILN_FLOAT_FUNCTION(asinh, asinh)
KILN_FLOAT_FUNCTION(acosh, acosh)
KILN_FLOAT_FUNCTION(atanh, atanh)

// Odd rational approximations on the interval outside of which the result rounds to +-1, and is
// exactly that, as on the host: x * (1 + erf(x)) must be 0 for a large negative x. A third of the
// library's instructions.
KILN_DEVICE float clamped_to(float x, float end) {
  const float above = x < -end ? -end : x;
  return above > end ? end : above;  // NaN stays
}
KILN_DEVICE float tanh_of(float x) {
  constexpr float kEnd = 7.90531110763549805f;
  const float v = clamped_to(x, kEnd);
  const float s = v * v;
  float p = -2.76076847742355e-16f;
  p = fmaf(p, s, 2.00018790482477e-13f);
  p = fmaf(p, s, -8.60467152213735e-11f);
  p = fmaf(p, s, 5.12229709037114e-08f);
  p = fmaf(p, s, 1.48572235717979e-05f);
  p = fmaf(p, s, 6.37261928875436e-04f);
  p = fmaf(p, s, 4.89352455891786e-03f);
  float q = 1.19825839466702e-06f;
  q = fmaf(q, s, 1.18534705686654e-04f);
  q = fmaf(q, s, 2.26843463243900e-03f);
  q = fmaf(q, s, 4.89352518554385e-03f);
  return fabsf(v) == kEnd ? copysignf(1.0f, v) : v * (p * quick_reciprocal(q));
}
KILN_DEVICE float erf_of(float x) {
  constexpr float kEnd = 3.832506856900711f;
  const float v = clamped_to(x, kEnd);
  const float s = v * v;
  float p = -2.72614225801306e-10f;
  p = fmaf(p, s, 2.77068142495902e-08f);
  p = fmaf(p, s, -2.10102402082508e-06f);
  p = fmaf(p, s, -5.69250639462346e-05f);
  p = fmaf(p, s, -7.34990630326855e-04f);
  p = fmaf(p, s, -2.95459980854025e-03f);
  p = fmaf(p, s, -1.60960333262415e-02f);
  float q = -1.45660718464996e-05f;
  q = fmaf(q, s, -2.13374055278905e-04f);
  q = fmaf(q, s, -1.68282697438203e-03f);
  q = fmaf(q, s, -7.37332916720468e-03f);
  q = fmaf(q, s, -1.42647390514189e-02f);
  return fabsf(v) == kEnd ? copysignf(1.0f, v) : v * (p * quick_reciprocal(q));
}

template <class D>
KILN_DEVICE Reg<D> op_tanh(Reg<D> x) {
  if constexpr (D::kBits == 64)
    return tanh(x);
  else
    return tanh_of(x);
}
template <class D>
KILN_DEVICE Reg<D> op_erf(Reg<D> x) {
  if constexpr (D::kBits == 64)
    return erf(x);
  else
    return erf_of(x);
}

template <class D>
KILN_DEVICE Reg<D> op_reciprocal(Reg<D> x) {
  return 1 / x;
}
template <class D>
KILN_DEVICE Reg<D> op_sigmoid(Reg<D> x) {
  if constexpr (D::kBits == 64)
    return 1 / (1 + exp(-x));
  else
    return quick_reciprocal(1 + expf(-x));
}

template <class D>
KILN_DEVICE bool op_is_nan(Reg<D> x) {
  return x != x;
}
template <class D>
KILN_DEVICE bool op_is_pos_inf(Reg<D> x) {
  return x == static_cast<Reg<D>>(float_of(0x7F800000u));
}
template <class D>
KILN_DEVICE bool op_is_neg_inf(Reg<D> x) {
  return x == static_cast<Reg<D>>(float_of(0xFF800000u));
}
