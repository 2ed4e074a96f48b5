// Loops over lanes, one a shape of scalar function, and what the files of functions tell each
// other.
#pragma once
#include <cstdint>

#include "engine/host/dtype_conversion.h"
#include "engine/host/loop/lane_functions.h"

namespace kiln::host {

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

// Integers are computed in 64 bits, then wrapped into their dtype.
inline uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }
inline bool is_u64(DType dtype) { return dtype == DType::kU64; }
inline int64_t wrap(uint64_t value, DType dtype) {
  return wrap_integer(dtype, static_cast<int64_t>(value));
}

// nullptr: there is no such function of these lanes.
LaneFunction float_function(ScalarFn fn, Lane lane);  // kF32, kF64
LaneFunction integer_function(ScalarFn fn);
LaneFunction power_function(Lane base, Lane exponent);

}  // namespace kiln::host
