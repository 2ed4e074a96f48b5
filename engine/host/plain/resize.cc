// resize: one axis after the other, each by its table of cells and weights.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/resize_axis.h"
#include "engine/host/plain/scalar_apply.h"

namespace kiln::host {
namespace {

struct Pass {
  int64_t outer, inner;          // products of the extents before and after the axis, at its turn
  int64_t outer_out, inner_out;  // the same of the result
  ResizeAxis axis;
  ResizeTable table;
};

struct Plan {
  std::vector<Pass> passes;  // one a resized axis, outermost first
  bool nearest = false;
  double extrapolation = 0;
  int64_t in_count = 0, out_count = 0;
};

Result<ResizeRule> resize_rule(const Operation& o) {
  KILN_ASSIGN_OR_RETURN(const size_t mode,
                        choice_attribute(o, "mode", {"nearest", "linear", "cubic"}));
  KILN_ASSIGN_OR_RETURN(
      const size_t coordinates,
      choice_attribute(o, "coordinate_transformation_mode",
                       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                        "asymmetric", "tf_crop_and_resize"}));
  KILN_ASSIGN_OR_RETURN(
      const size_t nearest,
      choice_attribute(o, "nearest_mode",
                       {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  KILN_ASSIGN_OR_RETURN(const bool antialias, flag_attribute(o, "antialias"));
  KILN_ASSIGN_OR_RETURN(const bool exclude_outside, flag_attribute(o, "exclude_outside"));
  KILN_ASSIGN_OR_RETURN(const double cubic_a, double_attribute(o, "cubic_coeff_a"));
  return ResizeRule{static_cast<ResizeMode>(mode),
                    static_cast<Coordinates>(coordinates),
                    static_cast<NearestMode>(nearest),
                    antialias,
                    exclude_outside,
                    static_cast<float>(cubic_a)};
}

// roi holds starts then ends, one each an axis; it counts for tf_crop_and_resize only.
std::vector<ResizeAxis> resize_axes(const Operation& o, const Shape& in) {
  const auto sizes = o.get_ints("sizes");
  const auto scales = o.get_doubles("scales"), roi = o.get_doubles("roi");
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool crops = roi.size() == 2 * in.size();
    axes.push_back({in[i], sizes[i], static_cast<float>(scales[i]),
                    crops ? static_cast<float>(roi[i]) : 0.0F,
                    crops ? static_cast<float>(roi[i + in.size()]) : 1.0F});
  }
  return axes;
}

// An axis that keeps every cell where it is.
bool is_identity(const ResizeRule& rule, const ResizeAxis& axis) {
  const bool crops =
      rule.coordinates == Coordinates::kCropAndResize && (axis.roi_start != 0 || axis.roi_end != 1);
  return axis.in == axis.out && axis.scale == 1.0F && !crops;
}

// Nearest: elements are moved, never computed with.
template <class T>
void move_pass(const Pass& pass, const T* from, T* to) {
  const auto& [in, out, scale, start, end] = pass.axis;
  parallel_for(pass.outer, out * pass.inner, [&, in = in, out = out](int64_t begin, int64_t last) {
    for (int64_t item = begin * out; item < last * out; ++item) {
      const T* row = from + (item / out * in + pass.table.cells[item % out]) * pass.inner;
      std::copy_n(row, pass.inner, to + item * pass.inner);
    }
  });
}

template <class T>
void weigh_row(const Pass& pass, const T* from, int64_t first_tap, double* sums, T* to) {
  std::fill_n(sums, pass.inner, 0.0);
  for (int64_t t = first_tap; t < first_tap + pass.table.taps; ++t) {
    const double weight = pass.table.weights[t];
    const T* row = from + pass.table.cells[t] * pass.inner;
    for (int64_t j = 0; j < pass.inner; ++j) sums[j] += weight * static_cast<double>(row[j]);
  }
  for (int64_t j = 0; j < pass.inner; ++j) to[j] = static_cast<T>(sums[j]);
}

// The innermost axis.
template <class T>
void weigh_line(const ResizeTable& table, int64_t out, const T* from, T* to) {
  const double* weight = table.weights.data();
  const int64_t* cell = table.cells.data();
  for (int64_t i = 0; i < out; ++i) {
    double sum = 0;
    for (int64_t t = 0; t < table.taps; ++t) sum += *weight++ * static_cast<double>(from[*cell++]);
    to[i] = static_cast<T>(sum);
  }
}

template <class T>
void weigh_pass(const Pass& pass, const T* from, T* to) {
  const int64_t in = pass.axis.in, out = pass.axis.out, taps = pass.table.taps;
  parallel_for(pass.outer, out * taps * pass.inner, [&](int64_t begin, int64_t last) {
    std::vector<double> sums(pass.inner);
    for (int64_t o = begin; o < last; ++o) {
      const T* source = from + o * in * pass.inner;
      T* target = to + o * out * pass.inner;
      if (pass.inner == 1) {
        weigh_line(pass.table, out, source, target);
        continue;
      }
      for (int64_t i = 0; i < out; ++i) {
        weigh_row(pass, source, i * taps, sums.data(), target + i * pass.inner);
      }
    }
  });
}

template <class T>
void extrapolate(const Plan& plan, T* out) {
  for (const Pass& pass : plan.passes) {
    if (pass.table.outside.empty()) continue;
    for (int64_t item = 0; item < pass.outer_out * pass.axis.out; ++item) {
      if (!pass.table.outside[item % pass.axis.out]) continue;
      std::fill_n(out + item * pass.inner_out, pass.inner_out, static_cast<T>(plan.extrapolation));
    }
  }
}

template <class T, class RunPass>
void run_passes(const Plan& plan, const T* in, T* out, const RunPass& run_pass) {
  if (plan.passes.empty()) std::copy_n(in, plan.out_count, out);
  std::vector<T> from, to;
  for (size_t i = 0; i < plan.passes.size(); ++i) {
    const Pass& pass = plan.passes[i];
    const bool last = i + 1 == plan.passes.size();
    if (!last) to.resize(pass.outer * pass.axis.out * pass.inner);
    run_pass(pass, i == 0 ? in : from.data(), last ? out : to.data());
    from.swap(to);
  }
  extrapolate(plan, out);
}

template <class T>
void resize(const Plan& plan, const T* in, T* out) {
  if (plan.nearest) return run_passes(plan, in, out, move_pass<T>);
  if constexpr (std::is_floating_point_v<T>) {
    run_passes(plan, in, out, weigh_pass<T>);
  } else {  // in between, integers would lose their fractions
    const std::vector<double> wide(in, in + plan.in_count);
    std::vector<double> result(plan.out_count);
    run_passes(plan, wide.data(), result.data(), weigh_pass<double>);
    std::transform(result.begin(), result.end(), out, saturate_to<T, double>);
  }
}

Plan make_plan(const Prepare& p) {
  const TensorType &in = p.inputs[0].type, &out = p.outputs[0];
  const ResizeRule rule = *resize_rule(p.operation);
  Plan plan{{},
            rule.mode == ResizeMode::kNearest,
            p.operation.get_double("extrapolation_value", 0),
            in.elements(),
            out.elements()};
  const auto axes = resize_axes(p.operation, in.shape);
  Shape extents = in.shape;
  const auto product = [](const Shape& shape, size_t first, size_t last) {
    return element_count({shape.begin() + first, shape.begin() + last});
  };
  for (size_t i = 0; i < axes.size(); ++i) {
    if (is_identity(rule, axes[i])) continue;
    const size_t rank = axes.size();
    plan.passes.push_back({product(extents, 0, i), product(extents, i + 1, rank),
                           product(out.shape, 0, i), product(out.shape, i + 1, rank), axes[i],
                           resize_table(rule, axes[i])});
    extents[i] = axes[i].out;
  }
  return plan;
}

}  // namespace

Result<Types> infer_resize(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(resize_rule(o));
  KILN_RETURN_IF_ERROR(double_attribute(o, "extrapolation_value"));
  const int64_t rank = in[0].rank();
  KILN_ASSIGN_OR_RETURN(const auto sizes, ints_attribute(o, "sizes", rank, 0, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(const auto scales, doubles_attribute(o, "scales", rank));
  KILN_ASSIGN_OR_RETURN(const auto roi, doubles_attribute(o, "roi", -1));
  if (!roi.empty() && roi.size() != 2 * in[0].shape.size()) {
    return reject(o, "attribute 'roi' has " + std::to_string(roi.size()) + " entries, expected " +
                         std::to_string(2 * rank));
  }
  for (int64_t i = 0; i < rank; ++i) {
    // Also what keeps the tables in proportion to the tensors.
    const double wanted = scales[i] * static_cast<double>(in[0].shape[i]);
    const auto size = static_cast<double>(sizes[i]);
    const bool sane = scales[i] > 0 && std::abs(wanted - size) <= 1 + 1e-3 * size;
    if (sane && (in[0].shape[i] > 0 || sizes[i] == 0)) continue;
    return reject(o, "axis " + std::to_string(i) + " of " + to_string(in[0]) +
                         " cannot get extent " + std::to_string(sizes[i]) + " by scale " +
                         std::to_string(scales[i]));
  }
  return results(o, {{in[0].dtype, sizes}});
}

Result<KernelPtr> prepare_resize(const Prepare& p) {
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  // The tables hold every tap of every position: a bound that no image reaches.
  constexpr int64_t kLongest = 1 << 22;
  for (const Shape* shape : {&p.inputs[0].type.shape, &p.outputs[0].shape}) {
    if (std::any_of(shape->begin(), shape->end(), [](int64_t e) { return e > kLongest; })) {
      return unsupported(p.operation, "an axis of " + to_string(*shape) + " is longer than 2^22");
    }
  }
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = make_plan(p)](Inputs in, Outputs out) {
      resize<T>(plan, input<T>(in, 0), output<T>(out, 0));
    });
  });
}

}  // namespace kiln::host
