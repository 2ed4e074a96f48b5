// Arithmetic: op_<name of ScalarFn><types>(arguments). Integers wrap.

template <class D>
KILN_DEVICE Reg<D> op_identity(Reg<D> x) {
  return x;
}
template <class D>
KILN_DEVICE Reg<D> op_neg(Reg<D> x) {
  if constexpr (D::kFloat)
    return -x;
  else
    return D::wrap(0 - static_cast<typename D::Unsigned>(x));
}
template <class D>
KILN_DEVICE Reg<D> op_abs(Reg<D> x) {
  if constexpr (sizeof(Reg<D>) == 8 && D::kFloat)
    return fabs(x);
  else if constexpr (D::kFloat)
    return fabsf(x);
  else
    return x < 0 ? op_neg<D>(x) : x;
}
template <class D>
KILN_DEVICE Reg<D> op_sign(Reg<D> x) {
  const Reg<D> sign = static_cast<Reg<D>>((x > 0 ? 1 : 0) - (x < 0 ? 1 : 0));
  return x != x ? x : sign;
}

template <class D>
KILN_DEVICE Reg<D> op_add(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat)
    return a + b;
  else
    return D::wrap(static_cast<typename D::Unsigned>(a) + static_cast<typename D::Unsigned>(b));
}
template <class D>
KILN_DEVICE Reg<D> op_sub(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat)
    return a - b;
  else
    return D::wrap(static_cast<typename D::Unsigned>(a) - static_cast<typename D::Unsigned>(b));
}
template <class D>
KILN_DEVICE Reg<D> op_mul(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat)
    return a * b;
  else
    return D::wrap(static_cast<typename D::Unsigned>(a) * static_cast<typename D::Unsigned>(b));
}
// Integers: by 0 gives 0, and the lowest by -1 wraps.
template <class D>
KILN_DEVICE Reg<D> op_div(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if constexpr (D::kIsSigned) {
      if (b == -1) return op_neg<D>(a);
    }
    return a / b;
  }
}
// x / d within one unit in the last place, for a divisor that many values share: its reciprocal is
// taken once. A divisor so small that this would be infinite is scaled up, and with it the values.
template <class D>
KILN_DEVICE Reg<D> divide_by_shared(Reg<D> x, Reg<D> d) {
  if constexpr (D::kBits == 64) {
    return x / d;
  } else {
    const float scale = fabsf(d) < 0x1p-100f ? 0x1p64f : 1.0f;
    const float reciprocal = 1.0f / (d * scale);
    return x * scale * reciprocal;
  }
}
template <class D>
KILN_DEVICE Reg<D> op_fmod(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat && D::kBits == 64) {
    return fmod(a, b);
  } else if constexpr (D::kFloat) {
    return fmodf(a, b);
  } else {
    if (b == 0) return 0;
    if constexpr (D::kIsSigned) {
      if (b == -1) return 0;
    }
    return a % b;
  }
}
template <class D>
KILN_DEVICE Reg<D> op_mod(Reg<D> a, Reg<D> b) {
  const Reg<D> r = op_fmod<D>(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class D>
KILN_DEVICE Reg<D> op_min(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat && D::kBits <= 32)
    return min_or_nan(a, b);
  else
    return a < b || a != a ? a : b;
}
template <class D>
KILN_DEVICE Reg<D> op_max(Reg<D> a, Reg<D> b) {
  if constexpr (D::kFloat && D::kBits <= 32)
    return max_or_nan(a, b);
  else
    return a > b || a != a ? a : b;
}

template <class D, class E>
KILN_DEVICE Reg<D> op_pow(Reg<D> base, Reg<E> exponent) {
  if constexpr (!D::kFloat && !E::kFloat) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (D::kIsSigned && base == static_cast<Reg<D>>(-1)) return exponent % 2 == 0 ? 1 : base;
      return 0;
    }
    typename D::Unsigned result = 1, factor = static_cast<typename D::Unsigned>(base);
    for (auto left = static_cast<typename E::Unsigned>(exponent); left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return D::wrap(result);
  } else if constexpr (!D::kFloat) {
    return saturated<D>(pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else {
    if (exponent == 2) return base * base;
    if (exponent == 3) return base * base * base;
    if constexpr (sizeof(Reg<D>) == 4 && sizeof(Reg<E>) == 4 && E::kFloat)
      return powf(base, exponent);
    else
      return static_cast<Reg<D>>(pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}
