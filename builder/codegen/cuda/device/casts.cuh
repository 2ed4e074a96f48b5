// Casts as ONNX has them; where the standard leaves the result open, what the host does.

template <class To, class F>
KILN_DEVICE typename To::Reg saturated(F x) {
  if (x != x) return 0;
  // 2^digits: exact in every float type.
  constexpr int kDigits = To::kBits - (To::kIsSigned ? 1 : 0);
  const F end = static_cast<F>(1ull << (kDigits - 1)) * 2;
  if (x >= end) return To::highest();
  if (x < (To::kIsSigned ? -end : F{0})) return To::lowest();
  return static_cast<typename To::Reg>(x);
}

template <class To>
KILN_DEVICE typename To::Reg rounded(float x, bool saturate) {
  return To::decode(To::encode(x, saturate));
}

// To float such that rounding once more, to a narrower type, rounds as if once: the last bit is
// set when bits were lost.
KILN_DEVICE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  unsigned bits = bits_of(nearest);
  const double magnitude = value < 0 ? -value : value;
  if (static_cast<double>(nearest < 0 ? -nearest : nearest) > magnitude) --bits;
  return float_of(bits | 1u);
}

template <class From, class To>
KILN_DEVICE typename To::Reg cast(typename From::Reg x, bool saturate = true) {
  using Reg = typename From::Reg;
  if constexpr (To::kBits == 8 && sizeof(typename To::Reg) == 1) {
    return x != 0;
  } else if constexpr (!To::kFloat) {
    if constexpr (From::kFloat && To::kBits == 4)
      return To::wrap(static_cast<typename To::Unsigned>(saturated<i64>(x)));
    else if constexpr (From::kFloat)
      return saturated<To>(x);
    else
      return To::wrap(static_cast<typename To::Unsigned>(x));
  } else if constexpr (To::kBits >= 32) {
    return static_cast<typename To::Reg>(x);
  } else if constexpr (sizeof(Reg) == 4 && From::kFloat) {
    return rounded<To>(x, saturate);
  } else if constexpr (!From::kFloat && From::kBits < 24) {
    return rounded<To>(static_cast<float>(x), saturate);
  } else {
    return rounded<To>(round_to_odd(static_cast<double>(x)), saturate);
  }
}
