// Scalar functions of integers.
#include "engine/host/loop/lane_loops.h"

namespace kiln::host {
namespace {

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

}  // namespace

LaneFunction integer_function(ScalarFn fn) {
  if (LaneFunction found = integer_unary(fn)) return found;
  if (LaneFunction found = integer_binary(fn)) return found;
  return comparison<int64_t, less>(fn);
}

}  // namespace kiln::host
