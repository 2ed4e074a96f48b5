#include "engine/host/loop/lane_functions.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "engine/host/dtype_conversion.h"
#include "engine/host/loop/lane_math.h"

namespace kiln::host {
namespace {

// --- shapes of loops ---

template <class T>
const T* lanes(const Operand& operand) {
  return static_cast<const T*>(operand.lanes);
}

template <class T, class Out, auto kFn>
void unary(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const T* x = lanes<T>(args[0]);
  auto* y = static_cast<Out*>(out);
  for (int64_t i = 0; i < count; ++i) y[i] = kFn(x[i], dtypes[0]);
}

template <class A, class B, class Out, auto kFn>
void binary(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const A* a = lanes<A>(args[0]);
  const B* b = lanes<B>(args[1]);
  auto* y = static_cast<Out*>(out);
  const DType dtype = dtypes[0];
  if (args[0].uniform) {
    const A one = a[0];
    for (int64_t i = 0; i < count; ++i) y[i] = kFn(one, b[args[1].uniform ? 0 : i], dtype);
  } else if (args[1].uniform) {
    const B one = b[0];
    for (int64_t i = 0; i < count; ++i) y[i] = kFn(a[i], one, dtype);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = kFn(a[i], b[i], dtype);
  }
}

template <class T>
void where(const Operand* args, const DType*, void* out, int64_t count) {
  const uint8_t* condition = lanes<uint8_t>(args[0]);
  const T* a = lanes<T>(args[1]);
  const T* b = lanes<T>(args[2]);
  auto* y = static_cast<T*>(out);
  const T a0 = a[0], b0 = b[0];
  if (args[0].uniform) {
    const Operand& chosen = condition[0] ? args[1] : args[2];
    const T* from = lanes<T>(chosen);
    for (int64_t i = 0; i < count; ++i) y[i] = from[chosen.uniform ? 0 : i];
  } else if (!args[1].uniform && !args[2].uniform) {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b[i];
  } else if (args[1].uniform && args[2].uniform) {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a0 : b0;
  } else if (args[1].uniform) {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a0 : b[i];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b0;
  }
}

// --- floats ---

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
LaneFunction float_unary(ScalarFn fn) {
  constexpr bool kFast = std::is_same_v<T, float>;
  switch (fn) {
    case ScalarFn::kIdentity:
      return unary<T, T, [](T x, DType) { return x; }>;
    case ScalarFn::kAbs:
      return unary<T, T, [](T x, DType) { return std::fabs(x); }>;
    case ScalarFn::kNeg:
      return unary<T, T, [](T x, DType) { return -x; }>;
    case ScalarFn::kExp:
      if constexpr (kFast)
        return unary<T, T, [](T x, DType) { return exp_f32(x); }>;
      else
        return unary<T, T, [](T x, DType) { return std::exp(x); }>;
    case ScalarFn::kLog:
      return unary<T, T, [](T x, DType) { return std::log(x); }>;
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

// --- integers: computed in 64 bits, then wrapped into the dtype ---

uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }
bool is_u64(DType dtype) { return dtype == DType::kU64; }

int64_t wrap(uint64_t value, DType dtype) {
  return wrap_integer(dtype, static_cast<int64_t>(value));
}

int64_t divide(int64_t a, int64_t b, DType dtype) {
  if (b == 0) return 0;
  if (is_u64(dtype)) return static_cast<int64_t>(bits(a) / bits(b));
  return b == -1 ? wrap(0 - bits(a), dtype) : wrap(bits(a / b), dtype);
}

int64_t truncated_mod(int64_t a, int64_t b, DType dtype) {
  if (b == 0) return 0;
  if (is_u64(dtype)) return static_cast<int64_t>(bits(a) % bits(b));
  return b == -1 ? 0 : a % b;
}

int64_t python_mod(int64_t a, int64_t b, DType dtype) {
  const int64_t r = truncated_mod(a, b, dtype);
  return !is_u64(dtype) && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

bool less(int64_t a, int64_t b, DType dtype) { return is_u64(dtype) ? bits(a) < bits(b) : a < b; }

int64_t integer_power(int64_t base, int64_t exponent, DType dtype) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1, factor = bits(base);
  for (uint64_t left = bits(exponent); left != 0; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return wrap(result, dtype);
}

// Shifting out every bit leaves 0.
int64_t shift_left(int64_t a, int64_t b, DType dtype) {
  return bits(b) > 63 ? 0 : wrap(bits(a) << b, dtype);
}
int64_t shift_right(int64_t a, int64_t b, DType) {
  return bits(b) > 63 ? 0 : static_cast<int64_t>(bits(a) >> b);
}

using I = int64_t;

LaneFunction integer_unary(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kIdentity:
      return unary<I, I, [](I x, DType) { return x; }>;
    case ScalarFn::kAbs:
      return unary<I, I,
                   [](I x, DType t) { return !is_u64(t) && x < 0 ? wrap(0 - bits(x), t) : x; }>;
    case ScalarFn::kNeg:
      return unary<I, I, [](I x, DType t) { return wrap(0 - bits(x), t); }>;
    case ScalarFn::kSign:
      return unary<I, I, [](I x, DType t) -> I { return x == 0 ? 0 : less(x, 0, t) ? -1 : 1; }>;
    case ScalarFn::kBitNot:
      return unary<I, I, [](I x, DType t) { return wrap(~bits(x), t); }>;
    default:
      return nullptr;
  }
}

LaneFunction integer_binary(ScalarFn fn) {
  switch (fn) {
    case ScalarFn::kAdd:
      return binary<I, I, I, [](I a, I b, DType t) { return wrap(bits(a) + bits(b), t); }>;
    case ScalarFn::kSub:
      return binary<I, I, I, [](I a, I b, DType t) { return wrap(bits(a) - bits(b), t); }>;
    case ScalarFn::kMul:
      return binary<I, I, I, [](I a, I b, DType t) { return wrap(bits(a) * bits(b), t); }>;
    case ScalarFn::kDiv:
      return binary<I, I, I, divide>;
    case ScalarFn::kMod:
      return binary<I, I, I, python_mod>;
    case ScalarFn::kFmod:
      return binary<I, I, I, truncated_mod>;
    case ScalarFn::kMin:
      return binary<I, I, I, [](I a, I b, DType t) { return less(b, a, t) ? b : a; }>;
    case ScalarFn::kMax:
      return binary<I, I, I, [](I a, I b, DType t) { return less(a, b, t) ? b : a; }>;
    case ScalarFn::kBitAnd:
      return binary<I, I, I, [](I a, I b, DType) { return a & b; }>;
    case ScalarFn::kBitOr:
      return binary<I, I, I, [](I a, I b, DType) { return a | b; }>;
    case ScalarFn::kBitXor:
      return binary<I, I, I, [](I a, I b, DType) { return a ^ b; }>;
    case ScalarFn::kShiftLeft:
      return binary<I, I, I, shift_left>;
    case ScalarFn::kShiftRight:
      return binary<I, I, I, shift_right>;
    default:
      return nullptr;
  }
}

// --- comparisons, booleans ---

template <class T, auto kLess>
LaneFunction comparison(ScalarFn fn) {
  using B = uint8_t;
  switch (fn) {
    case ScalarFn::kEqual:
      return binary<T, T, B, [](T a, T b, DType) -> B { return a == b; }>;
    case ScalarFn::kLess:
      return binary<T, T, B, [](T a, T b, DType t) -> B { return kLess(a, b, t); }>;
    case ScalarFn::kGreater:
      return binary<T, T, B, [](T a, T b, DType t) -> B { return kLess(b, a, t); }>;
    case ScalarFn::kLessEqual:
      return binary<T, T, B, [](T a, T b, DType t) -> B { return kLess(a, b, t) || a == b; }>;
    case ScalarFn::kGreaterEqual:
      return binary<T, T, B, [](T a, T b, DType t) -> B { return kLess(b, a, t) || a == b; }>;
    default:
      return nullptr;
  }
}

LaneFunction boolean(ScalarFn fn) {
  using B = uint8_t;
  switch (fn) {
    case ScalarFn::kIdentity:
      return unary<B, B, [](B x, DType) { return x; }>;
    case ScalarFn::kNot:
      return unary<B, B, [](B x, DType) -> B { return x ^ 1; }>;
    case ScalarFn::kAnd:
      return binary<B, B, B, [](B a, B b, DType) -> B { return a & b; }>;
    case ScalarFn::kOr:
      return binary<B, B, B, [](B a, B b, DType) -> B { return a | b; }>;
    case ScalarFn::kXor:
      return binary<B, B, B, [](B a, B b, DType) -> B { return a ^ b; }>;
    case ScalarFn::kEqual:
      return binary<B, B, B, [](B a, B b, DType) -> B { return a == b; }>;
    default:
      return nullptr;
  }
}

// --- powers: the exponent has its own dtype ---

float power_f32(float base, float exponent, DType) {
  if (exponent == 2) return base * base;
  return std::pow(base, exponent);
}

template <class Base, class Exponent>
void power(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const Base* a = lanes<Base>(args[0]);
  const Exponent* b = lanes<Exponent>(args[1]);
  auto* y = static_cast<Base*>(out);
  for (int64_t i = 0; i < count; ++i) {
    const Base base = a[args[0].uniform ? 0 : i];
    const Exponent exponent = b[args[1].uniform ? 0 : i];
    if constexpr (std::is_integral_v<Base> && std::is_integral_v<Exponent>) {
      y[i] = integer_power(base, exponent, dtypes[0]);
    } else if constexpr (std::is_integral_v<Base>) {
      const double wide =
          is_u64(dtypes[0]) ? static_cast<double>(bits(base)) : static_cast<double>(base);
      y[i] = saturate_to_integer(dtypes[0], std::pow(wide, static_cast<double>(exponent)));
    } else {
      y[i] = static_cast<Base>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
  }
}

void power_of_floats(const Operand* args, const DType* dtypes, void* out, int64_t count) {
  const float exponent = *lanes<float>(args[1]);
  if (args[1].uniform && exponent == 2) {
    return unary<float, float, [](float x, DType) { return x * x; }>(args, dtypes, out,
                                                                     args[0].uniform ? 1 : count);
  }
  if (args[1].uniform && exponent == 3) {
    return unary<float, float, [](float x, DType) { return x * x * x; }>(
        args, dtypes, out, args[0].uniform ? 1 : count);
  }
  binary<float, float, float, power_f32>(args, dtypes, out, count);
}

template <class Base>
LaneFunction power_of(Lane exponent) {
  switch (exponent) {
    case Lane::kF32:
      return power<Base, float>;
    case Lane::kF64:
      return power<Base, double>;
    default:
      return power<Base, int64_t>;
  }
}

template <class T>
bool float_less(T a, T b, DType) {
  return a < b;
}

template <class T>
LaneFunction float_function(ScalarFn fn) {
  if (LaneFunction found = float_unary<T>(fn)) return found;
  if (LaneFunction found = float_binary<T>(fn)) return found;
  return comparison<T, float_less<T>>(fn);
}

LaneFunction integer_function(ScalarFn fn) {
  if (LaneFunction found = integer_unary(fn)) return found;
  if (LaneFunction found = integer_binary(fn)) return found;
  return comparison<int64_t, less>(fn);
}

}  // namespace

LaneFunction lane_function(ScalarFn fn, const DType* dtypes) {
  const Lane lane = lane_of(dtypes[0]);
  if (fn == ScalarFn::kWhere) {
    switch (lane_of(dtypes[1])) {
      case Lane::kF32:
        return where<float>;
      case Lane::kF64:
        return where<double>;
      case Lane::kI64:
        return where<int64_t>;
      case Lane::kBool:
        return where<uint8_t>;
    }
  }
  if (fn == ScalarFn::kPow) {
    const Lane exponent = lane_of(dtypes[1]);
    if (lane == Lane::kF32 && exponent == Lane::kF32) return power_of_floats;
    if (lane == Lane::kF32) return power_of<float>(exponent);
    return lane == Lane::kF64 ? power_of<double>(exponent) : power_of<int64_t>(exponent);
  }
  switch (lane) {
    case Lane::kF32:
      return float_function<float>(fn);
    case Lane::kF64:
      return float_function<double>(fn);
    case Lane::kI64:
      return integer_function(fn);
    case Lane::kBool:
      return boolean(fn);
  }
  return nullptr;
}

}  // namespace kiln::host
