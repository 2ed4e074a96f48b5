// max_pool, average_pool, lp_pool over x [N, C, spatial...], as ONNX 22 has them: with ceil_mode a
// window may reach past the padded input, but none starts there.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/window.h"

namespace kiln::host {
namespace {

struct Plan {
  Window window;
  Shape in, out;
  int64_t planes, in_points, out_points;
};

// Taps [first, last) of one axis that fall on cells [0, extent).
struct Range {
  int64_t start, first, last;
};

Range taps_inside(const Window& w, size_t axis, int64_t start, int64_t extent) {
  const int64_t step = w.dilations[axis];
  const int64_t first = start >= 0 ? 0 : (-start + step - 1) / step;
  const int64_t last = start >= extent ? 0 : (extent - 1 - start) / step + 1;
  return {start, first, std::clamp(last, first, std::max(first, w.kernel[axis]))};
}

// Calls visit(offset) for each cell of the plane under the window.
template <class Visit>
void visit_cells(const Plan& plan, const std::vector<Range>& ranges, size_t axis, int64_t base,
                 Visit& visit) {
  const Range& range = ranges[axis];
  for (int64_t t = range.first; t < range.last; ++t) {
    const int64_t at = base * plan.in[axis] + range.start + t * plan.window.dilations[axis];
    if (axis + 1 == ranges.size())
      visit(at);
    else
      visit_cells(plan, ranges, axis + 1, at, visit);
  }
}

// Calls body(plane, point, ranges) for every output element.
template <class Body>
void for_each_window(const Plan& plan, const Body& body) {
  parallel_for(
      plan.planes, plan.out_points * plan.window.taps() * 4, [&](int64_t begin, int64_t end) {
        std::vector<Range> ranges(plan.in.size());
        for (int64_t plane = begin; plane < end; ++plane) {
          Odometer at(plan.out);
          for (int64_t point = 0; point < plan.out_points; ++point, at.next()) {
            for (size_t i = 0; i < ranges.size(); ++i) {
              const int64_t start = at.at()[i] * plan.window.strides[i] - plan.window.begin[i];
              ranges[i] = taps_inside(plan.window, i, start, plan.in[i]);
            }
            body(plane, point, ranges);
          }
        }
      });
}

Result<Window> pool_window(const Operation& o, InputTypes in) {
  KILN_ASSIGN_OR_RETURN(auto kernel,
                        ints_attribute(o, "kernel_shape", in[0].rank() - 2, 1, kMaxAmount));
  return read_window(o, std::move(kernel));
}

Result<TensorType> pooled(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 3, 8));
  KILN_ASSIGN_OR_RETURN(const Window w, pool_window(o, in));
  KILN_ASSIGN_OR_RETURN(const bool ceil_mode, flag_attribute(o, "ceil_mode"));
  TensorType out{in[0].dtype, {in[0].shape[0], in[0].shape[1]}};
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t extent = in[0].shape[i + 2], stride = w.strides[i];
    const int64_t room = extent + w.begin[i] + w.end[i] - w.span(i);
    // ceil_mode lets a window that does not fit whole count, if it starts before the end padding.
    if (extent > kMaxAmount || room < 0) {
      return reject(o, "the window " + to_string(w.kernel) + " does not fit the padded input " +
                           to_string(in[0]) + " on axis " + std::to_string(i + 2));
    }
    int64_t count = (ceil_mode ? room + stride - 1 : room) / stride + 1;
    if (ceil_mode && (count - 1) * stride >= extent + w.begin[i]) --count;
    out.shape.push_back(count);
  }
  return out;
}

Plan make_plan(const Prepare& p) {
  const TensorType& in = p.inputs[0].type;
  const Types types{in};
  Plan plan{*pool_window(p.operation, types),
            {in.shape.begin() + 2, in.shape.end()},
            {p.outputs[0].shape.begin() + 2, p.outputs[0].shape.end()},
            in.shape[0] * in.shape[1],
            0,
            0};
  plan.in_points = element_count(plan.in);
  plan.out_points = element_count(plan.out);
  return plan;
}

// Position of a cell in the whole input as ONNX counts it: storage_order 1 is column-major within
// the plane.
int64_t stored_index(const Plan& plan, int64_t plane, int64_t cell, bool column_major) {
  if (!column_major || cell < 0) return plane * plan.in_points + cell;
  int64_t index = 0;
  std::vector<int64_t> at(plan.in.size());
  for (size_t i = plan.in.size(); i-- > 0; cell /= plan.in[i]) at[i] = cell % plan.in[i];
  for (size_t i = plan.in.size(); i-- > 0;) index = index * plan.in[i] + at[i];
  return plane * plan.in_points + index;
}

template <class T>
void max_pool(const Plan& plan, const T* x, T* y, int64_t* indices, bool column_major) {
  using Limits = std::numeric_limits<T>;
  for_each_window(plan, [&](int64_t plane, int64_t point, const std::vector<Range>& ranges) {
    const T* from = x + plane * plan.in_points;
    T best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    int64_t found = -1;
    const auto visit = [&](int64_t cell) {
      // A NaN wins and stays.
      if (found >= 0 && (from[cell] <= best || best != best)) return;
      best = from[cell];
      found = cell;
    };
    visit_cells(plan, ranges, 0, 0, visit);
    y[plane * plan.out_points + point] = best;
    if (indices) {
      indices[plane * plan.out_points + point] = stored_index(plan, plane, found, column_major);
    }
  });
}

// Cells that an average divides by: those of the input, or those of the padded input.
int64_t cell_count(const Plan& plan, const std::vector<Range>& ranges, bool include_pad) {
  int64_t count = 1;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Window& w = plan.window;
    if (!include_pad) {
      count *= ranges[i].last - ranges[i].first;
    } else {
      const int64_t room = plan.in[i] + w.end[i] - 1 - ranges[i].start;
      count *= std::min(w.kernel[i], room / w.dilations[i] + 1);
    }
  }
  return count;
}

template <class T>
void average_pool(const Plan& plan, const T* x, T* y, bool include_pad) {
  for_each_window(plan, [&](int64_t plane, int64_t point, const std::vector<Range>& ranges) {
    const T* from = x + plane * plan.in_points;
    double sum = 0;
    const auto visit = [&](int64_t cell) { sum += static_cast<double>(from[cell]); };
    visit_cells(plan, ranges, 0, 0, visit);
    const auto count = static_cast<double>(cell_count(plan, ranges, include_pad));
    y[plane * plan.out_points + point] = static_cast<T>(sum / count);
  });
}

template <class T>
void lp_pool(const Plan& plan, const T* x, T* y, double p) {
  for_each_window(plan, [&](int64_t plane, int64_t point, const std::vector<Range>& ranges) {
    const T* from = x + plane * plan.in_points;
    double sum = 0;
    const auto visit = [&](int64_t cell) {
      sum += std::pow(std::abs(static_cast<double>(from[cell])), p);
    };
    visit_cells(plan, ranges, 0, 0, visit);
    y[plane * plan.out_points + point] = static_cast<T>(std::pow(sum, 1 / p));
  });
}

}  // namespace

// Outputs: the maxima and, with attribute with_indices, their positions (i64).
Result<Types> infer_max_pool(const Operation& o, InputTypes in) {
  KILN_ASSIGN_OR_RETURN(const TensorType out, pooled(o, in));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "storage_order"));
  KILN_ASSIGN_OR_RETURN(const bool with_indices, flag_attribute(o, "with_indices"));
  if (!with_indices) return results(o, {out});
  return results(o, {out, {DType::kI64, out.shape}});
}

Result<KernelPtr> prepare_max_pool(const Prepare& p) {
  const bool column_major = p.operation.get_int("storage_order", 0) == 1;
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = make_plan(p), column_major](Inputs in, Outputs out) {
      max_pool<T>(plan, input<T>(in, 0), output<T>(out, 0),
                  out.size() > 1 ? output<int64_t>(out, 1) : nullptr, column_major);
    });
  });
}

Result<Types> infer_average_pool(const Operation& o, InputTypes in) {
  KILN_ASSIGN_OR_RETURN(const TensorType out, pooled(o, in));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "count_include_pad"));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  return results(o, {out});
}

Result<KernelPtr> prepare_average_pool(const Prepare& p) {
  const bool include_pad = p.operation.get_int("count_include_pad", 0) == 1;
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = make_plan(p), include_pad](Inputs in, Outputs out) {
      average_pool<T>(plan, input<T>(in, 0), output<T>(out, 0), include_pad);
    });
  });
}

Result<Types> infer_lp_pool(const Operation& o, InputTypes in) {
  KILN_ASSIGN_OR_RETURN(const TensorType out, pooled(o, in));
  KILN_RETURN_IF_ERROR(int_attribute(o, "p", 1, 1 << 20));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  return results(o, {out});
}

Result<KernelPtr> prepare_lp_pool(const Prepare& p) {
  const auto power = static_cast<double>(p.operation.get_int("p", 2));
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = make_plan(p), power](Inputs in, Outputs out) {
      lp_pool<T>(plan, input<T>(in, 0), output<T>(out, 0), power);
    });
  });
}

}  // namespace kiln::host
