// Functions for arguments that are known to be small, and for results that 16 bits are kept of.
// Polynomials are least maximal errors; all give NaN for NaN.

// cos and sin for |x| <= 1 + 1/64 from kTerms terms beyond the first. Relative errors, before
// rounding: 2 terms 6.2e-5 and 7.3e-6, 3 terms 2.9e-7 and 2.6e-8, 4 terms 9e-10 and 6e-11.
template <int kTerms>
KILN_DEVICE float cos_near_0(float x) {
  const float s = x * x;
  if constexpr (kTerms == 2)
    return fmaf(fmaf(0.03945509344339371f, s, -0.49907785654067993f), s, 0.9999380111694336f);
  float p = -0.0013365796767175198f;
  if constexpr (kTerms == 3) {
    p = fmaf(p, s, 0.0416313000023365f);
    return fmaf(fmaf(p, s, -0.49999213218688965f), s, 0.9999997019767761f);
  }
  p = fmaf(2.4078080969047733e-05f, s, -0.0013882125495001674f);
  p = fmaf(p, s, 0.04166640341281891f);
  return fmaf(fmaf(p, s, -0.4999999701976776f), s, 1.0f);
}
template <int kTerms>
KILN_DEVICE float sin_near_0(float x) {
  const float s = x * x;
  float p = 0.008027170784771442f;
  if constexpr (kTerms == 2) return x * fmaf(fmaf(p, s, -0.16654612123966217f), s, 0.9999927878f);
  p = -0.00019274180522188544f;
  if constexpr (kTerms == 3) {
    p = fmaf(fmaf(p, s, 0.00832963827997446f), s, -0.16666588187217712f);
  } else {
    p = fmaf(2.6912753128272016e-06f, s, -0.00019835408602375537f);
    p = fmaf(fmaf(p, s, 0.008333311416208744f), s, -0.1666666567325592f);
  }
  return fmaf(x * s, p, x);
}

// e ^ x within 2e-5: the square of its root, which is no subnormal where e ^ x is one.
KILN_DEVICE float quick_exp(float x) {
  const float root = quick_power_of_2(x * 0.72134752f);
  return root * root;
}
// From e ^ x, which is small where the result is; infinities would meet where it is 1.
KILN_DEVICE float quick_sigmoid(float x) {
  const float e = quick_exp(min_or_nan(x, 60.0f));
  return e * quick_reciprocal(1 + e);
}

// 1 + erf(x) = erfc(-x), within 7e-5 (5 terms) or 1e-5 (6) of itself also where it is small, which
// a sum would not be: erfc(a) = exp(-a^2) p(1 / (1 + k a)) for a >= 0, the form of Hastings,
// "Approximations for Digital Computers", sheet 61, fitted to the relative error.
template <int kTerms>
KILN_DEVICE float quick_one_plus_erf(float x) {
  const float t = quick_reciprocal(fmaf(kTerms == 5 ? 0.35f : 0.45f, fabsf(x), 1.0f));
  float p = 0.5221896767616272f;
  if constexpr (kTerms == 5) {
    p = fmaf(p, t, -0.26846548914909363f);
    p = fmaf(p, t, 0.39508524537086487f);
    p = fmaf(p, t, 0.14951013028621674f);
    p = fmaf(p, t, 0.20161426067352295f);
  } else {
    p = fmaf(-0.1344328075647354f, t, 0.28775572776794434f);
    p = fmaf(p, t, 0.09485138952732086f);
    p = fmaf(p, t, 0.2454080581665039f);
    p = fmaf(p, t, 0.2525218725204468f);
    p = fmaf(p, t, 0.253886878490448f);
  }
  const float tail = p * t * quick_power_of_2(x * -1.44269504f * x);
  return x < 0 ? tail : 2.0f - tail;
}

// x (1 + erf(sqrt(1/2) x)) / 2 = max(x, 0) - |x| 2^P(|x|), where P is log2 of the normal
// distribution's tail, within a share of itself: 8 terms beyond the first 1.5e-4, 7 terms 6e-6 from
// -6 on, below which it is nearer to 0 than the least f16. 0 for an infinity below 0. 16 times 2^P
// is a normal float as long as the result is one.
template <int kTerms>
KILN_DEVICE float quick_gelu(float x) {
  const float a = saturate(fabsf(x) * 0.0625f);
  float p;
  if constexpr (kTerms == 7) {
    p = fmaf(-492.5970153808594f, a, 1033.5208740234375f);
    p = fmaf(p, a, -975.7559814453125f);
    p = fmaf(p, a, 557.5791015625f);
    p = fmaf(p, a, -221.02102661132812f);
    p = fmaf(p, a, -117.36685943603516f);
    p = fmaf(p, a, -18.42001724243164f);
    p = fmaf(p, a, 3.000004768371582f);
  } else {
    p = fmaf(115.16311645507812f, a, -460.1383361816406f);
    p = fmaf(p, a, 792.084228515625f);
    p = fmaf(p, a, -775.9835815429688f);
    p = fmaf(p, a, 484.76458740234375f);
    p = fmaf(p, a, -207.81634521484375f);
    p = fmaf(p, a, -118.49626922607422f);
    p = fmaf(p, a, -18.38381004333496f);
    p = fmaf(p, a, 2.999811887741089f);
  }
  return fmaf(-a, quick_power_of_2(p), max_or_nan(x, 0.0f));
}
