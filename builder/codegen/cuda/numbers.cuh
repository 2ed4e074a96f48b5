// What every generated kernel starts with: the element types, how they lie in memory, and the
// scalar functions and reductions of the loop IR. Plain C++ over the few device_primitives.cuh.
//
// A type D has Reg, in which its values are computed, and kBits, kFloat. Narrow floats are computed
// in float, integers of up to 32 bits in 32 bits.

template <bool kTest, class A, class B>
struct Choose {
  using Type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using Type = B;
};

// --- element types: decode(bits) -> Reg, encode(Reg) -> bits ---

struct f32 {
  using Reg = float;
  static constexpr int kBits = 32;
  static constexpr bool kFloat = true;
  KILN_DEVICE static float decode(unsigned bits) { return float_of(bits); }
  KILN_DEVICE static unsigned encode(float x, bool) { return bits_of(x); }
};
struct f64 {
  using Reg = double;
  static constexpr int kBits = 64;
  static constexpr bool kFloat = true;
  KILN_DEVICE static double decode(unsigned long long bits) { return double_of(bits); }
  KILN_DEVICE static unsigned long long encode(double x, bool) { return bits_of(x); }
};
struct f16 {
  using Reg = float;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = true;
  KILN_DEVICE static float decode(unsigned bits) { return float_of_f16(bits); }
  KILN_DEVICE static unsigned encode(float x, bool) { return f16_of(x); }
};
struct bf16 {
  using Reg = float;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = true;
  KILN_DEVICE static float decode(unsigned bits) { return float_of(bits << 16); }
  KILN_DEVICE static unsigned encode(float x, bool) { return bf16_of(x); }
};

// kMantissa bits; 2^kMinExponent is the smallest normal number; codes above kMax are kOverflow (an
// infinity if that is not NaN) and NaN. FNUZ types have one zero, and NaN in place of the other.
template <int kMantissa, int kMinExponent, unsigned kMax, unsigned kOverflow, unsigned kNan>
struct Float8 {
  using Reg = float;
  static constexpr int kBits = 8;
  static constexpr bool kFloat = true;
  static constexpr bool kFnuz = kNan == 0x80;

  KILN_DEVICE static float power_of_two(int exponent) { return float_of((exponent + 127) << 23); }

  KILN_DEVICE static float decode(unsigned bits) {
    const unsigned code = bits & 0x7F;
    // The fields as those of a float; the exponent's bias is put right by an exact product.
    float x = float_of(code << (23 - kMantissa)) * power_of_two(126 + kMinExponent);
    if (kFnuz ? bits == kNan : code > kMax) {
      x = float_of(kOverflow != kNan && code == kOverflow ? 0x7F800000u : 0x7FC00000u);
    }
    return bits & 0x80 ? -x : x;
  }

  KILN_DEVICE static unsigned encode(float value, bool saturate) {
    const unsigned bits = bits_of(value);
    const unsigned sign = bits >> 24 & 0x80;
    const unsigned magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000u) return kNan | sign;
    unsigned code;
    if (magnitude < static_cast<unsigned>((kMinExponent + 127) << 23)) {
      const float steps = float_of(magnitude) * power_of_two(kMantissa - kMinExponent);
      code = static_cast<unsigned>(rintf(steps));
    } else {
      constexpr int kDropped = 23 - kMantissa;
      const unsigned odd = magnitude >> kDropped & 1;
      code = (magnitude + ((1u << (kDropped - 1)) - 1) + odd) >> kDropped;
      code -= static_cast<unsigned>(kMinExponent + 126) << kMantissa;
    }
    if (code > kMax) return (saturate ? kMax : kOverflow) | sign;
    return kFnuz && code == 0 ? 0 : code | sign;
  }
};
using f8e4m3fn = Float8<3, -6, 0x7E, 0x7F, 0x7F>;
using f8e4m3fnuz = Float8<3, -7, 0x7F, 0x80, 0x80>;
using f8e5m2 = Float8<2, -14, 0x7B, 0x7C, 0x7F>;
using f8e5m2fnuz = Float8<2, -15, 0x7F, 0x80, 0x80>;

template <int kWidth, bool kSigned>
struct Integer {
  static constexpr int kBits = kWidth;
  static constexpr bool kFloat = false;
  static constexpr bool kIsSigned = kSigned;
  using Unsigned = typename Choose<kWidth == 64, unsigned long long, unsigned>::Type;
  using Signed = typename Choose<kWidth == 64, long long, int>::Type;
  using Reg = typename Choose<kSigned, Signed, Unsigned>::Type;
  static constexpr int kUnused = static_cast<int>(sizeof(Reg)) * 8 - kWidth;

  KILN_DEVICE static Reg wrap(Unsigned x) {
    if (kSigned) return static_cast<Reg>(static_cast<Signed>(x << kUnused) >> kUnused);
    return static_cast<Reg>(x << kUnused >> kUnused);
  }
  KILN_DEVICE static Reg lowest() {
    return kSigned ? static_cast<Reg>(-static_cast<Signed>(~Unsigned{0} >> (kUnused + 1)) - 1) : 0;
  }
  KILN_DEVICE static Reg highest() {
    return static_cast<Reg>(~Unsigned{0} >> (kUnused + (kSigned ? 1 : 0)));
  }
  KILN_DEVICE static Reg decode(Unsigned bits) { return wrap(bits); }
  KILN_DEVICE static Unsigned encode(Reg x, bool) { return static_cast<Unsigned>(x); }
};
using i4 = Integer<4, true>;
using u4 = Integer<4, false>;
using i8 = Integer<8, true>;
using u8 = Integer<8, false>;
using i16 = Integer<16, true>;
using u16 = Integer<16, false>;
using i32 = Integer<32, true>;
using u32 = Integer<32, false>;
using i64 = Integer<64, true>;
using u64 = Integer<64, false>;

struct boolean {
  using Reg = bool;
  static constexpr int kBits = 8;
  static constexpr bool kFloat = false;
  KILN_DEVICE static bool decode(unsigned bits) { return bits != 0; }
  KILN_DEVICE static unsigned encode(bool x, bool) { return x ? 1 : 0; }
};

// --- memory: buffers are read and written in packs of kCount elements ---

template <class D, int kCount>
struct Pack {
  static constexpr int kBytes = (D::kBits * kCount + 7) / 8;
  static constexpr int kWords = (kBytes + 3) / 4;
  unsigned words[kWords] = {};
};

template <class D, int kCount>
KILN_DEVICE typename D::Reg get(const Pack<D, kCount>& pack, int at) {
  if constexpr (D::kBits == 64) {
    return D::decode(pack.words[2 * at] | static_cast<unsigned long long>(pack.words[2 * at + 1])
                                              << 32);
  } else if constexpr (D::kBits == 32) {
    return D::decode(pack.words[at]);
  } else {
    constexpr int kPerWord = 32 / D::kBits;
    const unsigned word = pack.words[at / kPerWord] >> (at % kPerWord * D::kBits);
    return D::decode(word & ((1u << D::kBits) - 1));
  }
}

// One element as it lies in memory; 4-bit ones take a byte.
template <class D>
using Bits = typename Choose<D::kBits == 64, unsigned long long,
                             typename Choose<D::kBits == 32, unsigned,
                                             typename Choose<D::kBits == 16, unsigned short,
                                                             unsigned char>::Type>::Type>::Type;

template <class D, int kCount>
KILN_DEVICE Bits<D> bits_at(const Pack<D, kCount>& pack, int at) {
  if constexpr (D::kBits == 64) {
    return pack.words[2 * at] | static_cast<unsigned long long>(pack.words[2 * at + 1]) << 32;
  } else {
    constexpr int kPerWord = 32 / D::kBits;
    const unsigned word = pack.words[at / kPerWord] >> (at % kPerWord * D::kBits);
    return static_cast<Bits<D>>(D::kBits == 32 ? word : word & ((1u << (D::kBits % 32)) - 1));
  }
}

// REQUIRES: the pack's element was not put before.
template <class D, int kCount>
KILN_DEVICE void put(Pack<D, kCount>& pack, int at, typename D::Reg value, bool saturate = true) {
  const auto bits = D::encode(value, saturate);
  if constexpr (D::kBits == 64) {
    pack.words[2 * at] = static_cast<unsigned>(bits);
    pack.words[2 * at + 1] = static_cast<unsigned>(bits >> 32);
  } else if constexpr (D::kBits == 32) {
    pack.words[at] = bits;
  } else {
    constexpr int kPerWord = 32 / D::kBits;
    const unsigned mask = (1u << D::kBits) - 1;
    pack.words[at / kPerWord] |= (bits & mask) << (at % kPerWord * D::kBits);
  }
}

template <class D, int kCount>
KILN_DEVICE Pack<D, kCount> splat(typename D::Reg value) {
  Pack<D, kCount> pack;
#pragma unroll
  for (int at = 0; at < kCount; ++at) put(pack, at, value);
  return pack;
}

// REQUIRES: elements from `at` on lie on a boundary of the pack's size, 16 bytes at most.
template <class D, int kCount, class Index>
KILN_DEVICE Pack<D, kCount> load(const void* buffer, Index at) {
  Pack<D, kCount> pack;
  if constexpr (D::kBits * kCount == 4) {
    load_words<1>(static_cast<const char*>(buffer) + at / 2, pack.words);
    pack.words[0] = pack.words[0] >> (at % 2 * 4) & 0xF;
  } else {
    const long long offset = static_cast<long long>(at) * D::kBits / 8;
    load_words<Pack<D, kCount>::kBytes>(static_cast<const char*>(buffer) + offset, pack.words);
  }
  return pack;
}

template <class D, int kCount, class Index>
KILN_DEVICE void store(void* buffer, Index at, const Pack<D, kCount>& pack) {
  if constexpr (D::kBits * kCount == 4) {
    store_half_byte(buffer, at, pack.words[0]);
  } else {
    const long long offset = static_cast<long long>(at) * D::kBits / 8;
    store_words<Pack<D, kCount>::kBytes>(static_cast<char*>(buffer) + offset, pack.words);
  }
}

template <class D, class Index>
KILN_DEVICE typename D::Reg read(const void* buffer, Index at) {
  return get(load<D, 1>(buffer, at), 0);
}

template <class D, class Index>
KILN_DEVICE void write(void* buffer, Index at, typename D::Reg value, bool saturate = true) {
  Pack<D, 1> pack;
  put(pack, 0, value, saturate);
  store(buffer, at, pack);
}

// A gathered index outside of its range reads an element inside.
template <class Index, class Value>
KILN_DEVICE Index clamped(Value index, Index extent) {
  if (index < 0) return 0;
  return index < static_cast<Value>(extent) ? static_cast<Index>(index) : extent - 1;
}

// --- casts: ONNX's; where the standard leaves the result open, what the host does ---

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

// --- scalar functions: op_<name of ScalarFn><types>(arguments) ---

template <class D>
using Reg = typename D::Reg;

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

// Odd rational approximations on the interval outside of which the result rounds to +-1, as on the
// host; a third of the library's instructions.
KILN_DEVICE float clamped_to(float x, float end) {
  const float above = x < -end ? -end : x;
  return above > end ? end : above;  // NaN stays
}
KILN_DEVICE float tanh_of(float x) {
  const float v = clamped_to(x, 7.90531110763549805f);
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
  return v * (p * quick_reciprocal(q));
}
KILN_DEVICE float erf_of(float x) {
  const float v = clamped_to(x, 3.832506856900711f);
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
  return v * (p * quick_reciprocal(q));
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
KILN_DEVICE bool op_not(bool x) {
  return !x;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_not(Reg<D> x) {
  return D::wrap(~static_cast<typename D::Unsigned>(x));
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

template <class D>
KILN_DEVICE bool op_and(bool a, bool b) {
  return a && b;
}
template <class D>
KILN_DEVICE bool op_or(bool a, bool b) {
  return a || b;
}
template <class D>
KILN_DEVICE bool op_xor(bool a, bool b) {
  return a != b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_and(Reg<D> a, Reg<D> b) {
  return a & b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_or(Reg<D> a, Reg<D> b) {
  return a | b;
}
template <class D>
KILN_DEVICE Reg<D> op_bit_xor(Reg<D> a, Reg<D> b) {
  return a ^ b;
}
template <class D>
KILN_DEVICE Reg<D> op_shift_left(Reg<D> a, Reg<D> b) {
  return b >= sizeof(a) * 8 ? 0 : D::wrap(a << b);
}
template <class D>
KILN_DEVICE Reg<D> op_shift_right(Reg<D> a, Reg<D> b) {
  return b >= sizeof(a) * 8 ? 0 : a >> b;
}
template <class D>
KILN_DEVICE bool op_equal(Reg<D> a, Reg<D> b) {
  return a == b;
}
template <class D>
KILN_DEVICE bool op_less(Reg<D> a, Reg<D> b) {
  return a < b;
}
template <class D>
KILN_DEVICE bool op_greater(Reg<D> a, Reg<D> b) {
  return a > b;
}
template <class D>
KILN_DEVICE bool op_less_equal(Reg<D> a, Reg<D> b) {
  return a <= b;
}
template <class D>
KILN_DEVICE bool op_greater_equal(Reg<D> a, Reg<D> b) {
  return a >= b;
}
template <class D>
KILN_DEVICE Reg<D> op_where(bool test, Reg<D> a, Reg<D> b) {
  return test ? a : b;
}

// --- reductions: start<D>() is the identity ---

struct Sum {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    return 0;
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_add<D>(a, b);
  }
};
struct Prod {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    return 1;
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_mul<D>(a, b);
  }
};
struct Max {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    if constexpr (D::kFloat)
      return static_cast<Reg<D>>(float_of(0xFF800000u));
    else
      return D::lowest();
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_max<D>(a, b);
  }
};
struct Min {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    if constexpr (D::kFloat)
      return static_cast<Reg<D>>(float_of(0x7F800000u));
    else
      return D::highest();
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_min<D>(a, b);
  }
};
struct Any {
  template <class D>
  KILN_DEVICE static bool start() {
    return false;
  }
  template <class D>
  KILN_DEVICE static bool step(bool a, bool b) {
    return a || b;
  }
};
struct All {
  template <class D>
  KILN_DEVICE static bool start() {
    return true;
  }
  template <class D>
  KILN_DEVICE static bool step(bool a, bool b) {
    return a && b;
  }
};

// The result of kLanes neighbouring threads of a warp, in each of them. Every thread of the warp
// takes part.
template <class F, class D, int kLanes>
KILN_DEVICE Reg<D> reduce_lanes(Reg<D> x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = F::template step<D>(x, shuffle_xor(x, step));
  return x;
}

// The result of the whole block, in each thread; `slots` holds one element a warp and is used for
// nothing else.
template <class F, class D, int kThreads>
KILN_DEVICE Reg<D> reduce_block(Reg<D> x, Reg<D>* slots) {
  constexpr int kWarps = kThreads / 32;
  x = reduce_lanes<F, D, 32>(x);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;
  __syncthreads();
  return reduce_lanes<F, D, kWarps>(slots[threadIdx.x % kWarps]);
}

// Threads whose numbers are equal modulo kColumns share a result; `slots` holds one element a
// thread and is used for nothing else.
template <class F, class D, int kGroup, int kColumns>
KILN_DEVICE Reg<D> reduce_columns(Reg<D> x, Reg<D>* slots) {
  slots[threadIdx.x] = x;
  __syncthreads();
  const int column = threadIdx.x % kColumns;
  Reg<D> result = slots[column];
#pragma unroll
  for (int i = 1; i < kGroup; ++i)
    result = F::template step<D>(result, slots[i * kColumns + column]);
  return result;
}
