// top_k, arg_max, arg_min: by numpy's order, in which NaN is the largest value.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/lines.h"

namespace kiln::host {
namespace {

template <class T>
bool less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
  return a < b;
}

// The k best of every line, best first; equal values in the order of their indices.
template <class T>
void top_k(const Lines& lines, int64_t k, bool largest, const T* x, T* values, int64_t* indices) {
  parallel_for(lines.count(), lines.extent * 16, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(lines.extent);
    for (int64_t line = begin; line < end; ++line) {
      const T* from = x + lines.start(line, lines.extent);
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
        const T va = from[a * lines.inner], vb = from[b * lines.inner];
        if (less(va, vb)) return !largest;
        if (less(vb, va)) return largest;
        return a < b;
      });
      const int64_t to = lines.start(line, k);
      for (int64_t i = 0; i < k; ++i) {
        values[to + i * lines.inner] = from[order[i] * lines.inner];
        indices[to + i * lines.inner] = order[i];
      }
    }
  });
}

template <class T>
void arg_extreme(const Lines& lines, bool largest, bool last, const T* x, int64_t* out) {
  parallel_for(lines.count(), lines.extent * 2, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* from = x + lines.start(line, lines.extent);
      int64_t best = 0;
      for (int64_t i = 1; i < lines.extent; ++i) {
        const T candidate = from[i * lines.inner], found = from[best * lines.inner];
        const bool better = largest ? less(found, candidate) : less(candidate, found);
        const bool equal = !less(found, candidate) && !less(candidate, found);
        if (better || (last && equal)) best = i;
      }
      out[line] = best;
    }
  });
}

// A NaN is also the minimum, as numpy has it.
template <class T>
int64_t first_nan(const T* from, const Lines& lines, bool last) {
  int64_t found = -1;
  if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < lines.extent; ++i) {
      if (std::isnan(from[i * lines.inner]) && (found < 0 || last)) found = i;
    }
  }
  return found;
}

template <class T>
void arg_min(const Lines& lines, bool last, const T* x, int64_t* out) {
  arg_extreme(lines, false, last, x, out);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const int64_t nan = first_nan(x + lines.start(line, lines.extent), lines, last);
    if (nan >= 0) out[line] = nan;
  }
}

Result<Types> infer_arg(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  KILN_ASSIGN_OR_RETURN(const bool keep, flag_attribute(o, "keepdims"));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "select_last_index"));
  TensorType out{DType::kI64, in[0].shape};
  if (out.shape[axis] == 0) {
    return reject(o, "input is " + to_string(in[0]) + ", an empty axis has no extreme");
  }
  out.shape[axis] = 1;
  if (!keep) out.shape.erase(out.shape.begin() + axis);
  return results(o, {out});
}

}  // namespace

Result<Types> infer_top_k(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "largest"));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "sorted"));
  KILN_ASSIGN_OR_RETURN(const int64_t k, int_attribute(o, "k"));
  if (k < 0 || k > in[0].shape[axis]) {
    return reject(o, "k is " + std::to_string(k) + ", axis " + std::to_string(axis) + " of " +
                         to_string(in[0]) + " has " + std::to_string(in[0].shape[axis]) +
                         " elements");
  }
  TensorType values = in[0];
  values.shape[axis] = k;
  return results(o, {values, {DType::kI64, values.shape}});
}

Result<KernelPtr> prepare_top_k(const Prepare& p) {
  const Lines lines = lines_along(p.inputs[0].type.shape, p.operation.get_int("axis", 0));
  const int64_t k = p.operation.get_int("k", 0);
  const bool largest = p.operation.get_int("largest", 1) == 1;
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([=](Inputs in, Outputs out) {
      if (k > 0)
        top_k<T>(lines, k, largest, input<T>(in, 0), output<T>(out, 0), output<int64_t>(out, 1));
    });
  });
}

Result<Types> infer_arg_max(const Operation& o, InputTypes in) { return infer_arg(o, in); }

Result<KernelPtr> prepare_arg_max(const Prepare& p) {
  const Lines lines = lines_along(p.inputs[0].type.shape, p.operation.get_int("axis", 0));
  const bool last = p.operation.get_int("select_last_index", 0) == 1;
  return visit_number(p.inputs[0].type.dtype, [&]<class T>() {
    return make_kernel([=](Inputs in, Outputs out) {
      arg_extreme<T>(lines, true, last, input<T>(in, 0), output<int64_t>(out, 0));
    });
  });
}

Result<Types> infer_arg_min(const Operation& o, InputTypes in) { return infer_arg(o, in); }

Result<KernelPtr> prepare_arg_min(const Prepare& p) {
  const Lines lines = lines_along(p.inputs[0].type.shape, p.operation.get_int("axis", 0));
  const bool last = p.operation.get_int("select_last_index", 0) == 1;
  return visit_number(p.inputs[0].type.dtype, [&]<class T>() {
    return make_kernel([=](Inputs in, Outputs out) {
      arg_min<T>(lines, last, input<T>(in, 0), output<int64_t>(out, 0));
    });
  });
}

}  // namespace kiln::host
