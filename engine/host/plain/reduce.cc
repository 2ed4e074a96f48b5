// reduce: sum, prod, max, min over numbers, any and all over bools. f32 sums and products are
// accumulated in f64; an empty axis yields the identity.
#include <algorithm>
#include <limits>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/scalar_apply.h"

namespace kiln::host {
namespace {

struct Axis {
  int64_t extent, stride;  // in elements of the input
};

// Kept and reduced axes in row-major order, neighbours of one kind joined.
struct Plan {
  std::vector<Axis> kept, reduced;
  int64_t kept_count = 1, reduced_count = 1;
  bool inner_reduced = false;  // the innermost axis is reduced
};

Plan make_plan(const Shape& shape, const std::vector<int64_t>& axes) {
  Plan plan;
  const Shape strides = row_major_strides(shape);
  int last = -1;  // kind of the previous axis
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
    (reduced ? plan.reduced_count : plan.kept_count) *= shape[i];
    if (shape[i] == 1) continue;
    auto& list = reduced ? plan.reduced : plan.kept;
    if (last == reduced)
      list.back() = {list.back().extent * shape[i], strides[i]};
    else
      list.push_back({shape[i], strides[i]});
    last = reduced;
  }
  plan.inner_reduced = last == 1;
  return plan;
}

// Offset of the index-th point of `axes`.
int64_t offset_of(const std::vector<Axis>& axes, size_t count, int64_t index) {
  int64_t offset = 0;
  for (size_t i = count; i-- > 0; index /= axes[i].extent) {
    offset += index % axes[i].extent * axes[i].stride;
  }
  return offset;
}

template <ReduceFn fn, class A>
constexpr A identity() {
  using Limits = std::numeric_limits<A>;
  constexpr bool kFloat = std::is_floating_point_v<A>;
  switch (fn) {
    case ReduceFn::kProd:
    case ReduceFn::kAll:
      return 1;
    case ReduceFn::kMax:
      return kFloat ? -Limits::infinity() : Limits::lowest();
    case ReduceFn::kMin:
      return kFloat ? Limits::infinity() : Limits::max();
    default:
      return 0;
  }
}

template <ReduceFn fn, class A>
A combine(A a, A b) {
  if constexpr (fn == ReduceFn::kSum)
    return wrapping_add(a, b);
  else if constexpr (fn == ReduceFn::kProd)
    return wrapping_mul(a, b);
  else if constexpr (fn == ReduceFn::kMax)
    return extreme<ScalarFn::kMax>(a, b);
  else if constexpr (fn == ReduceFn::kMin)
    return extreme<ScalarFn::kMin>(a, b);
  else if constexpr (fn == ReduceFn::kAny)
    return static_cast<A>(a != 0 || b != 0);
  else
    return static_cast<A>(a != 0 && b != 0);
}

template <ReduceFn fn, class T>
using Accumulator =
    std::conditional_t<std::is_same_v<T, float> && (fn == ReduceFn::kSum || fn == ReduceFn::kProd),
                       double, T>;

// One dense run, in eight interleaved lanes.
template <ReduceFn fn, class T, class A>
A reduce_run(const T* x, int64_t n) {
  constexpr int64_t kLanes = 8;
  A lanes[kLanes];
  std::fill_n(lanes, kLanes, identity<fn, A>());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = combine<fn, A>(lanes[l], A(x[i + l]));
  }
  for (; i < n; ++i) lanes[0] = combine<fn, A>(lanes[0], A(x[i]));
  for (int64_t l = 1; l < kLanes; ++l) lanes[0] = combine<fn, A>(lanes[0], lanes[l]);
  return lanes[0];
}

template <ReduceFn fn, class T>
void reduce_rows(const Plan& plan, const T* x, T* out) {
  using A = Accumulator<fn, T>;
  const size_t outer = plan.reduced.size() - 1;
  const int64_t run = plan.reduced.back().extent, runs = plan.reduced_count / run;
  parallel_for(plan.kept_count, plan.reduced_count, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const T* row = x + offset_of(plan.kept, plan.kept.size(), s);
      A total = identity<fn, A>();
      for (int64_t r = 0; r < runs; ++r) {
        total = combine<fn, A>(total,
                               reduce_run<fn, T, A>(row + offset_of(plan.reduced, outer, r), run));
      }
      out[s] = static_cast<T>(total);
    }
  });
}

// The innermost axis is kept: whole rows are combined, in blocks that stay in the cache.
template <ReduceFn fn, class T>
void reduce_columns(const Plan& plan, const T* x, T* out) {
  using A = Accumulator<fn, T>;
  constexpr int64_t kBlock = 512;
  const Axis inner = plan.kept.empty() ? Axis{1, 1} : plan.kept.back();
  const size_t outer = plan.kept.empty() ? 0 : plan.kept.size() - 1;
  const int64_t blocks = (inner.extent + kBlock - 1) / kBlock;
  const int64_t cost = plan.reduced_count * std::min(kBlock, inner.extent);
  parallel_for(plan.kept_count / inner.extent * blocks, cost, [&](int64_t begin, int64_t end) {
    A totals[kBlock];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / blocks, first = item % blocks * kBlock;
      const int64_t n = std::min(kBlock, inner.extent - first);
      const T* base = x + offset_of(plan.kept, outer, row) + first;
      std::fill_n(totals, n, identity<fn, A>());
      for (int64_t r = 0; r < plan.reduced_count; ++r) {
        const T* from = base + offset_of(plan.reduced, plan.reduced.size(), r);
        for (int64_t i = 0; i < n; ++i) totals[i] = combine<fn, A>(totals[i], A(from[i]));
      }
      for (int64_t i = 0; i < n; ++i) out[row * inner.extent + first + i] = T(totals[i]);
    }
  });
}

template <ReduceFn fn, class T>
KernelPtr reduce_kernel(Plan plan) {
  return make_kernel([plan = std::move(plan)](Inputs in, Outputs outs) {
    T* out = output<T>(outs, 0);
    if (plan.kept_count == 0) return;
    if (plan.reduced_count == 0) {
      std::fill_n(out, plan.kept_count, static_cast<T>(identity<fn, Accumulator<fn, T>>()));
    } else if (plan.inner_reduced) {
      reduce_rows<fn>(plan, input<T>(in, 0), out);
    } else {
      reduce_columns<fn>(plan, input<T>(in, 0), out);
    }
  });
}

template <class T>
KernelPtr kernel_of(ReduceFn fn, Plan plan) {
  switch (fn) {
    case ReduceFn::kSum:
      return reduce_kernel<ReduceFn::kSum, T>(std::move(plan));
    case ReduceFn::kProd:
      return reduce_kernel<ReduceFn::kProd, T>(std::move(plan));
    case ReduceFn::kMax:
      return reduce_kernel<ReduceFn::kMax, T>(std::move(plan));
    case ReduceFn::kMin:
      return reduce_kernel<ReduceFn::kMin, T>(std::move(plan));
    default:
      break;
  }
  if (fn == ReduceFn::kAny) return reduce_kernel<ReduceFn::kAny, uint8_t>(std::move(plan));
  return reduce_kernel<ReduceFn::kAll, uint8_t>(std::move(plan));
}

}  // namespace

Result<Types> infer_reduce(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const auto axes, ints_attribute(o, "axes", -1, 0, in[0].rank() - 1));
  KILN_ASSIGN_OR_RETURN(const bool keep_dims, flag_attribute(o, "keep_dims"));
  const auto fn = parse_reduce_fn(o.get_string("fn", ""));
  if (!fn) return reject(o, "attribute 'fn' is '" + o.get_string("fn", "") + "'");
  if (*fn >= ReduceFn::kAny) KILN_RETURN_IF_ERROR(expect_dtype(o, in, 0, DType::kBool));
  TensorType out{in[0].dtype, {}};
  for (int64_t i = 0; i < in[0].rank(); ++i) {
    const auto times = std::count(axes.begin(), axes.end(), i);
    if (times > 1) return reject(o, "attribute 'axes' names axis " + std::to_string(i) + " twice");
    if (times == 0)
      out.shape.push_back(in[0].shape[i]);
    else if (keep_dims)
      out.shape.push_back(1);
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_reduce(const Prepare& p) {
  const ReduceFn fn = *parse_reduce_fn(p.operation.get_string("fn", ""));
  const TensorType& in = p.inputs[0].type;
  Plan plan = make_plan(in.shape, p.operation.get_ints("axes"));
  return visit_number(in.dtype, [&]<class T>() { return kernel_of<T>(fn, std::move(plan)); });
}

}  // namespace kiln::host
