// Scalar functions of floats; the costly ones of f32 are those of lane_math.h.
#include <cmath>
#include <type_traits>

#include "engine/host/loop/lane_loops.h"
#include "engine/host/loop/lane_math.h"

namespace kiln::host {
namespace {

template <class T>
T sign_of(T x, DType) {
  const T sign = static_cast<T>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
  return x != x ? x : sign;
}

template <class T>
T floored_mod(T a, T b, DType) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class T>
LaneFunction algebraic(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kIdentity:
      return unary<T, T, [](T x, DType) { return x; }>;
    case ScalarFn::kAbs:
      return unary<T, T, [](T x, DType) { return std::fabs(x); }>;
    case ScalarFn::kNeg:
      return unary<T, T, [](T x, DType) { return -x; }>;
    case ScalarFn::kSqrt:
      return unary<T, T, [](T x, DType) { return std::sqrt(x); }>;
    case ScalarFn::kReciprocal:
      return unary<T, T, [](T x, DType) { return T{1} / x; }>;
    case ScalarFn::kFloor:
      return unary<T, T, [](T x, DType) { return std::floor(x); }>;
    case ScalarFn::kCeil:
      return unary<T, T, [](T x, DType) { return std::ceil(x); }>;
    case ScalarFn::kRound:
      return unary<T, T, [](T x, DType) { return std::nearbyint(x); }>;
    case ScalarFn::kSign:
      return unary<T, T, sign_of<T>>;
    case ScalarFn::kIsNan:
      return unary<T, uint8_t, [](T x, DType) -> uint8_t { return x != x; }>;
    case ScalarFn::kIsPosInf:
      return unary<T, uint8_t, [](T x, DType) -> uint8_t { return x == T{HUGE_VALF}; }>;
    case ScalarFn::kIsNegInf:
      return unary<T, uint8_t, [](T x, DType) -> uint8_t { return x == -T{HUGE_VALF}; }>;
    default:
      return nullptr;
  }
}

template <class T>
LaneFunction transcendental(ScalarFn fn) {
  constexpr bool kFast = std::is_same_v<T, float>;
  switch (fn) {
    case ScalarFn::kExp:
      if constexpr (kFast)
        return unary<T, T, [](T x, DType) { return exp_f32(x); }>;
      else
        return unary<T, T, [](T x, DType) { return std::exp(x); }>;
    case ScalarFn::kLog:
      return unary<T, T, [](T x, DType) { return std::log(x); }>;
    case ScalarFn::kSin:
      return unary<T, T, [](T x, DType) { return std::sin(x); }>;
    case ScalarFn::kCos:
      return unary<T, T, [](T x, DType) { return std::cos(x); }>;
    case ScalarFn::kTan:
      return unary<T, T, [](T x, DType) { return std::tan(x); }>;
    case ScalarFn::kAsin:
      return unary<T, T, [](T x, DType) { return std::asin(x); }>;
    case ScalarFn::kAcos:
      return unary<T, T, [](T x, DType) { return std::acos(x); }>;
    case ScalarFn::kAtan:
      return unary<T, T, [](T x, DType) { return std::atan(x); }>;
    case ScalarFn::kSinh:
      return unary<T, T, [](T x, DType) { return std::sinh(x); }>;
    case ScalarFn::kCosh:
      return unary<T, T, [](T x, DType) { return std::cosh(x); }>;
    case ScalarFn::kTanh:
      if constexpr (kFast)
        return unary<T, T, [](T x, DType) { return tanh_f32(x); }>;
      else
        return unary<T, T, [](T x, DType) { return std::tanh(x); }>;
    case ScalarFn::kAsinh:
      return unary<T, T, [](T x, DType) { return std::asinh(x); }>;
    case ScalarFn::kAcosh:
      return unary<T, T, [](T x, DType) { return std::acosh(x); }>;
    case ScalarFn::kAtanh:
      return unary<T, T, [](T x, DType) { return std::atanh(x); }>;
    case ScalarFn::kErf:
      if constexpr (kFast)
        return unary<T, T, [](T x, DType) { return erf_f32(x); }>;
      else
        return unary<T, T, [](T x, DType) { return std::erf(x); }>;
    case ScalarFn::kSigmoid:
      if constexpr (kFast)
        return unary<T, T, [](T x, DType) { return sigmoid_f32(x); }>;
      else
        return unary<T, T, [](T x, DType) { return T{1} / (T{1} + std::exp(-x)); }>;
    default:
      return nullptr;
  }
}

template <class T>
LaneFunction float_binary(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kAdd:
      return binary<T, T, T, [](T a, T b, DType) { return a + b; }>;
    case ScalarFn::kSub:
      return binary<T, T, T, [](T a, T b, DType) { return a - b; }>;
    case ScalarFn::kMul:
      return binary<T, T, T, [](T a, T b, DType) { return a * b; }>;
    case ScalarFn::kDiv:
      return binary<T, T, T, [](T a, T b, DType) { return a / b; }>;
    case ScalarFn::kMod:
      return binary<T, T, T, floored_mod<T>>;
    case ScalarFn::kFmod:
      return binary<T, T, T, [](T a, T b, DType) { return std::fmod(a, b); }>;
    case ScalarFn::kMin:
      return binary<T, T, T, [](T a, T b, DType) { return ((a < b) | (a != a)) ? a : b; }>;
    case ScalarFn::kMax:
      return binary<T, T, T, [](T a, T b, DType) { return ((a > b) | (a != a)) ? a : b; }>;
    default:
      return nullptr;
  }
}

template <class T>
bool float_less(T a, T b, DType) {
  return a < b;
}

template <class T>
LaneFunction function_of(ScalarFn fn) {
  if (LaneFunction found = algebraic<T>(fn)) return found;
  if (LaneFunction found = transcendental<T>(fn)) return found;
  if (LaneFunction found = float_binary<T>(fn)) return found;
  return comparison<T, float_less<T>>(fn);
}

}  // namespace

LaneFunction float_function(ScalarFn fn, Lane lane) {
  return lane == Lane::kF64 ? function_of<double>(fn) : function_of<float>(fn);
}

}  // namespace kiln::host
