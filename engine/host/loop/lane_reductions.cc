#include <algorithm>
#include <limits>
#include <type_traits>

#include "engine/host/dtype_conversion.h"
#include "engine/host/loop/lane_functions.h"

namespace kiln::host {
namespace {

// An operation on accumulators of type A, each in 8 bytes, over lanes of type T.
struct Sum {
  template <class A>
  static constexpr A start() {
    return A{0};
  }
  template <class A>
  static A op(A a, A b) {
    return a + b;
  }
};
struct Prod {
  template <class A>
  static constexpr A start() {
    return A{1};
  }
  template <class A>
  static A op(A a, A b) {
    return a * b;
  }
};
// NaN wins; without elements the identity: an infinity, or the end of the integers' range.
struct Max {
  template <class A>
  static constexpr A start() {
    using Limits = std::numeric_limits<A>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <class A>
  static A op(A a, A b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Min {
  template <class A>
  static constexpr A start() {
    using Limits = std::numeric_limits<A>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <class A>
  static A op(A a, A b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

template <class Op, class T, class A>
void start(void* accumulators, int64_t count) {
  std::fill_n(static_cast<A*>(accumulators), count, Op::template start<A>());
}

template <class Op, class T, class A>
void add_lanes(void* accumulators, Operand x, int64_t count) {
  auto* acc = static_cast<A*>(accumulators);
  const T* from = static_cast<const T*>(x.lanes);
  if (x.uniform) {
    const A one = static_cast<A>(from[0]);
    for (int64_t i = 0; i < count; ++i) acc[i] = Op::op(acc[i], one);
  } else {
    for (int64_t i = 0; i < count; ++i) acc[i] = Op::op(acc[i], static_cast<A>(from[i]));
  }
}

// Sixteen partial results in the lanes' own type for each chunk, so that the loop vectorises and
// few additions separate an f32 element from the f64 accumulator.
template <class Op, class T, class A>
void add_block(void* accumulator, Operand x, int64_t count) {
  constexpr int64_t kWidth = 16, kChunk = 256;
  A& acc = *static_cast<A*>(accumulator);
  const T* from = static_cast<const T*>(x.lanes);
  if (x.uniform) {
    for (int64_t i = 0; i < count; ++i) acc = Op::op(acc, static_cast<A>(from[0]));
    return;
  }
  int64_t i = 0;
  while (count - i >= kWidth) {
    T partial[kWidth];
    for (int64_t k = 0; k < kWidth; ++k) partial[k] = from[i + k];
    const int64_t end = std::min(count, i + kChunk) - kWidth;
    for (i += kWidth; i <= end; i += kWidth) {
      for (int64_t k = 0; k < kWidth; ++k) partial[k] = Op::op(partial[k], from[i + k]);
    }
    for (int64_t k = 0; k < kWidth; ++k) acc = Op::op(acc, static_cast<A>(partial[k]));
  }
  for (; i < count; ++i) acc = Op::op(acc, static_cast<A>(from[i]));
}

template <class T, class A>
void finish(const void* accumulators, DType dtype, void* lanes, int64_t count) {
  const auto* acc = static_cast<const A*>(accumulators);
  auto* out = static_cast<T*>(lanes);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, int64_t>)
      out[i] = wrap_integer(dtype, static_cast<T>(acc[i]));
    else
      out[i] = static_cast<T>(acc[i]);
  }
}

template <class Op, class T, class A>
constexpr Reduction kReduction = {start<Op, T, A>, add_lanes<Op, T, A>, add_block<Op, T, A>,
                                  finish<T, A>};

// The identity of max and min is the end of the dtype's own range.
template <class Op>
void finish_integer(const void* accumulators, DType dtype, void* lanes, int64_t count) {
  const auto* acc = static_cast<const int64_t*>(accumulators);
  auto* out = static_cast<int64_t*>(lanes);
  const int64_t identity = Op::template start<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    out[i] =
        acc[i] == identity ? saturate_to_integer(dtype, static_cast<double>(identity)) : acc[i];
  }
}

template <class Op>
Reduction integer_extreme(DType dtype) {
  if (dtype == DType::kU64) return kReduction<Op, uint64_t, uint64_t>;
  Reduction row = kReduction<Op, int64_t, int64_t>;
  row.finish = finish_integer<Op>;
  return row;
}

template <class Op, class T>
Reduction float_reduction() {
  constexpr bool kExact = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
  return kReduction<Op, T, std::conditional_t<kExact, T, double>>;
}

template <class Op>
Reduction numeric(DType dtype) {
  switch (lane_of(dtype)) {
    case Lane::kF32:
      return float_reduction<Op, float>();
    case Lane::kF64:
      return float_reduction<Op, double>();
    default:
      break;
  }
  if constexpr (std::is_same_v<Op, Max> || std::is_same_v<Op, Min>) {
    return integer_extreme<Op>(dtype);
  } else {
    // Unsigned arithmetic wraps; the low bits are those of the signed result.
    Reduction row = kReduction<Op, uint64_t, uint64_t>;
    row.finish = finish<int64_t, uint64_t>;
    return row;
  }
}

}  // namespace

Reduction reduction(ReduceFn fn, DType dtype) {
  switch (fn) {
    case ReduceFn::kSum:
      return numeric<Sum>(dtype);
    case ReduceFn::kProd:
      return numeric<Prod>(dtype);
    case ReduceFn::kMax:
      return numeric<Max>(dtype);
    case ReduceFn::kMin:
      return numeric<Min>(dtype);
    case ReduceFn::kAny:
      return kReduction<Max, uint8_t, uint8_t>;
    case ReduceFn::kAll: {
      Reduction row = kReduction<Min, uint8_t, uint8_t>;
      row.start = [](void* accumulators, int64_t count) {
        std::fill_n(static_cast<uint8_t*>(accumulators), count, uint8_t{1});
      };
      return row;
    }
  }
  return {};
}

}  // namespace kiln::host
