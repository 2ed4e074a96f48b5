// Element types. A type D has Reg, in which its values are computed, kBits, kFloat, and
// decode(bits) -> Reg, encode(Reg, saturate) -> bits. Narrow floats are computed in float, integers
// of up to 32 bits in 32 bits.

template <bool kTest, class A, class B>
struct Choose {
  using Type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using Type = B;
};

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
    constexpr bool kE4m3 = kMantissa == 3 && !kFnuz;
    if (kConvertsToE4m3 && kE4m3 && saturate) return e4m3_of(value);
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

template <class D>
using Reg = typename D::Reg;
