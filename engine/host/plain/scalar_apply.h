// apply<fn>(x...): the scalar functions on C++ numbers, for the plain kernels. Integers wrap and
// truncate; dividing an integer by zero yields 0; NaN passes through min and max.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/host/number_dispatch.h"
#include "formats/loop_ir/scalar_function.h"

namespace kiln::host {

// Whether fn exists for operands of type T (bool is uint8_t).
template <ScalarFn fn, class T>
constexpr bool takes() {
  using enum ScalarFn;
  constexpr bool kFloat = std::is_floating_point_v<T>;
  switch (fn) {
    case kExp:
    case kLog:
    case kSqrt:
    case kFloor:
    case kCeil:
    case kRound:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kTanh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
    case kErf:
    case kSigmoid:
    case kIsNan:
    case kIsPosInf:
    case kIsNegInf:
    case kReciprocal:
      return kFloat;
    case kNot:
    case kAnd:
    case kOr:
    case kXor:
      return std::is_same_v<T, uint8_t>;
    case kBitNot:
    case kBitAnd:
    case kBitOr:
    case kBitXor:
      return !kFloat;
    case kShiftLeft:
    case kShiftRight:
      return std::unsigned_integral<T>;
    case kPow:
    case kWhere:
      return false;  // their operands differ in type
    default:
      return true;
  }
}

template <ScalarFn fn, class T>
T apply_float(T x) {
  using enum ScalarFn;
  if constexpr (fn == kExp) return std::exp(x);
  if constexpr (fn == kLog) return std::log(x);
  if constexpr (fn == kSqrt) return std::sqrt(x);
  if constexpr (fn == kReciprocal) return T{1} / x;
  if constexpr (fn == kFloor) return std::floor(x);
  if constexpr (fn == kCeil) return std::ceil(x);
  if constexpr (fn == kRound) return std::nearbyint(x);
  if constexpr (fn == kSin) return std::sin(x);
  if constexpr (fn == kCos) return std::cos(x);
  if constexpr (fn == kTan) return std::tan(x);
  if constexpr (fn == kAsin) return std::asin(x);
  if constexpr (fn == kAcos) return std::acos(x);
  if constexpr (fn == kAtan) return std::atan(x);
  if constexpr (fn == kSinh) return std::sinh(x);
  if constexpr (fn == kCosh) return std::cosh(x);
  if constexpr (fn == kTanh) return std::tanh(x);
  if constexpr (fn == kAsinh) return std::asinh(x);
  if constexpr (fn == kAcosh) return std::acosh(x);
  if constexpr (fn == kAtanh) return std::atanh(x);
  if constexpr (fn == kErf) return std::erf(x);
  // exp of a negative argument only: no overflow on either side.
  if constexpr (fn == kSigmoid) {
    const T e = std::exp(-std::abs(x));
    return x >= 0 ? T{1} / (T{1} + e) : (std::isnan(x) ? x : e / (T{1} + e));
  }
}

template <ScalarFn fn, class T>
auto apply(T x) {
  using enum ScalarFn;
  if constexpr (fn == kIdentity)
    return x;
  else if constexpr (fn == kAbs) {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else if constexpr (std::is_signed_v<T>)
      return x < 0 ? wrapping_mul<T>(x, T(-1)) : x;
    else
      return x;
  } else if constexpr (fn == kNeg) {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return wrapping_mul<T>(x, static_cast<T>(-1));
  } else if constexpr (fn == kSign) {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(x)) return x;
    return static_cast<T>((x > T{0}) - (x < T{0}));
  } else if constexpr (fn == kNot)
    return static_cast<uint8_t>(x == 0);
  else if constexpr (fn == kBitNot)
    return static_cast<T>(~x);
  else if constexpr (fn == kIsNan)
    return static_cast<uint8_t>(std::isnan(x));
  else if constexpr (fn == kIsPosInf)
    return static_cast<uint8_t>(std::isinf(x) && x > 0);
  else if constexpr (fn == kIsNegInf)
    return static_cast<uint8_t>(std::isinf(x) && x < 0);
  else
    return apply_float<fn, T>(x);
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return wrapping_mul<T>(a, T(-1));
    return static_cast<T>(a / b);
  }
}

template <class T>
T remainder_of_dividend(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0;
    return static_cast<T>(a % b);
  }
}

template <class T>
T remainder_of_divisor(T a, T b) {
  const T r = remainder_of_dividend(a, b);
  if constexpr (std::is_unsigned_v<T>)
    return r;
  else
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

template <ScalarFn fn, class T>
T extreme(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  if constexpr (fn == ScalarFn::kMin)
    return b < a ? b : a;
  else
    return a < b ? b : a;
}

template <ScalarFn fn, class T>
auto apply(T a, T b) {
  using enum ScalarFn;
  constexpr int kBits = static_cast<int>(sizeof(T) * 8);
  if constexpr (fn == kAdd)
    return wrapping_add(a, b);
  else if constexpr (fn == kSub) {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else if constexpr (fn == kMul)
    return wrapping_mul(a, b);
  else if constexpr (fn == kDiv)
    return divide(a, b);
  else if constexpr (fn == kMod)
    return remainder_of_divisor(a, b);
  else if constexpr (fn == kFmod)
    return remainder_of_dividend(a, b);
  else if constexpr (fn == kMin || fn == kMax)
    return extreme<fn>(a, b);
  else if constexpr (fn == kAnd)
    return static_cast<uint8_t>(a != 0 && b != 0);
  else if constexpr (fn == kOr)
    return static_cast<uint8_t>(a != 0 || b != 0);
  else if constexpr (fn == kXor)
    return static_cast<uint8_t>((a != 0) != (b != 0));
  else if constexpr (fn == kBitAnd)
    return static_cast<T>(a & b);
  else if constexpr (fn == kBitOr)
    return static_cast<T>(a | b);
  else if constexpr (fn == kBitXor)
    return static_cast<T>(a ^ b);
  else if constexpr (fn == kShiftLeft) {
    return static_cast<T>(b < kBits ? static_cast<uint64_t>(a) << b : 0);
  } else if constexpr (fn == kShiftRight)
    return static_cast<T>(b < kBits ? a >> b : 0);
  else if constexpr (fn == kEqual)
    return static_cast<uint8_t>(a == b);
  else if constexpr (fn == kLess)
    return static_cast<uint8_t>(a < b);
  else if constexpr (fn == kGreater)
    return static_cast<uint8_t>(a > b);
  else if constexpr (fn == kLessEqual)
    return static_cast<uint8_t>(a <= b);
  else
    return static_cast<uint8_t>(a >= b);
}

// base^exponent for integers, by squaring; a negative exponent truncates toward zero.
template <std::integral T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == T{1}) return 1;
    if constexpr (std::is_signed_v<T>)
      if (base == T{-1}) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  T result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = wrapping_mul(result, base);
    base = wrapping_mul(base, base);
  }
  return result;
}

// NaN becomes 0; everything else saturates.
template <std::integral T, std::floating_point F>
T saturate_to(F x) {
  if (std::isnan(x)) return 0;
  // The limits are powers of two, or exact after the shift by one: no rounding up past the type.
  constexpr F kLow = static_cast<F>(std::numeric_limits<T>::min());
  constexpr F kHigh = F{2} * static_cast<F>(std::numeric_limits<T>::max() / 2 + 1);
  if (x <= kLow) return std::numeric_limits<T>::min();
  if (x >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

template <class B, class E>
B power(B base, E exponent) {
  if constexpr (std::is_floating_point_v<B>) {
    if constexpr (std::is_same_v<B, E>)
      return std::pow(base, exponent);
    else
      return static_cast<B>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else if constexpr (std::is_floating_point_v<E>) {
    return saturate_to<B>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else {
    return integer_power(base, static_cast<int64_t>(exponent));
  }
}

}  // namespace kiln::host
