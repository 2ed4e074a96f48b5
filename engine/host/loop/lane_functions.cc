#include "engine/host/loop/lane_functions.h"

#include "engine/host/loop/lane_loops.h"

namespace kiln::host {
namespace {

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
  if (fn == ScalarFn::kPow) return power_function(lane, lane_of(dtypes[1]));
  switch (lane) {
    case Lane::kF32:
    case Lane::kF64:
      return float_function(fn, lane);
    case Lane::kI64:
      return integer_function(fn);
    case Lane::kBool:
      return boolean(fn);
  }
  return nullptr;
}

}  // namespace kiln::host
