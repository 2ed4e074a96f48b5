// roi_align: x [N, C, H, W], rois [R, 4] (x1, y1, x2, y2), images i64 [R] -> [R, C, h, w].
#include <algorithm>
#include <cmath>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

struct Plan {
  int64_t batch, channels, height, width, rois, out_height, out_width, sampling;
  double scale, shift;
  bool max, at_least_one;
};

// The four cells around a sample, with their weights; nothing for a sample far outside.
struct Sample {
  int64_t cells[4];
  double weights[4];
};

Sample sample_at(const Plan& p, double y, double x) {
  Sample s{};
  const auto height = static_cast<double>(p.height), width = static_cast<double>(p.width);
  if (!(y >= -1 && y <= height && x >= -1 && x <= width)) return s;
  y = std::clamp(y, 0.0, height - 1);
  x = std::clamp(x, 0.0, width - 1);
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, p.height - 1), right = std::min(left + 1, p.width - 1);
  const double fy = y - static_cast<double>(top), fx = x - static_cast<double>(left);
  const int64_t rows[2] = {top, bottom}, columns[2] = {left, right};
  for (int i = 0; i < 4; ++i) {
    s.cells[i] = rows[i / 2] * p.width + columns[i % 2];
    s.weights[i] = (i / 2 ? fy : 1 - fy) * (i % 2 ? fx : 1 - fx);
  }
  return s;
}

template <class T>
double pool(const Plan& p, const std::vector<Sample>& samples, const T* plane) {
  double sum = 0, best = -INFINITY;
  for (const Sample& s : samples) {
    for (int i = 0; i < 4; ++i) {
      const double part = s.weights[i] * static_cast<double>(plane[s.cells[i]]);
      sum += part;
      best = std::max(best, part);  // ONNX takes the maximum of the weighted cells
    }
  }
  if (p.max) return samples.empty() ? 0 : best;
  return sum / std::max<double>(1, static_cast<double>(samples.size()));
}

template <class T>
Result<> align_roi(const Plan& p, const T* x, const T* roi, T* y) {
  const double x1 = roi[0] * p.scale - p.shift, y1 = roi[1] * p.scale - p.shift;
  double width = roi[2] * p.scale - p.shift - x1, height = roi[3] * p.scale - p.shift - y1;
  if (p.at_least_one) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double bin_h = height / static_cast<double>(p.out_height);
  const double bin_w = width / static_cast<double>(p.out_width);
  const double grid_h = p.sampling > 0 ? static_cast<double>(p.sampling) : std::ceil(bin_h);
  const double grid_w = p.sampling > 0 ? static_cast<double>(p.sampling) : std::ceil(bin_w);
  constexpr double kMostSamples = 1 << 20;
  if (!(std::max(grid_h, 1.0) * std::max(grid_w, 1.0) <= kMostSamples)) {
    return Error{ErrorCode::kInvalidArgument,
                 "roi_align: a region asks for more than 2^20 samples a bin"};
  }
  std::vector<Sample> samples;
  for (int64_t bin = 0; bin < p.out_height * p.out_width; ++bin) {
    samples.clear();
    for (double iy = 0; iy < grid_h; ++iy) {
      for (double ix = 0; ix < grid_w; ++ix) {
        samples.push_back(sample_at(
            p, y1 + (static_cast<double>(bin / p.out_width) + (iy + 0.5) / grid_h) * bin_h,
            x1 + (static_cast<double>(bin % p.out_width) + (ix + 0.5) / grid_w) * bin_w));
      }
    }
    for (int64_t c = 0; c < p.channels; ++c) {
      y[c * p.out_height * p.out_width + bin] =
          static_cast<T>(pool(p, samples, x + c * p.height * p.width));
    }
  }
  return Ok();
}

}  // namespace

Result<Types> infer_roi_align(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 3));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 4, 4));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, 2, 2));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 1, {in[1].shape[0], 4}));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 1, in[0].dtype));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, {in[1].shape[0]}));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 2, DType::kI64));
  KILN_RETURN_IF_ERROR(choice_attribute(o, "mode", {"avg", "max"}));
  KILN_RETURN_IF_ERROR(
      choice_attribute(o, "coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}));
  KILN_RETURN_IF_ERROR(double_attribute(o, "spatial_scale"));
  KILN_RETURN_IF_ERROR(int_attribute(o, "sampling_ratio", 0, 1 << 10));
  KILN_ASSIGN_OR_RETURN(const int64_t height, int_attribute(o, "output_height", 1, kMaxAmount));
  KILN_ASSIGN_OR_RETURN(const int64_t width, int_attribute(o, "output_width", 1, kMaxAmount));
  if (in[0].shape[2] == 0 || in[0].shape[3] == 0) return reject(o, "the input has no pixels");
  return results(o, {{in[0].dtype, {in[1].shape[0], in[0].shape[1], height, width}}});
}

Result<KernelPtr> prepare_roi_align(const Prepare& p) {
  const Shape &x = p.inputs[0].type.shape, &y = p.outputs[0].shape;
  const Operation& o = p.operation;
  const bool half = o.get_string("coordinate_transformation_mode", "") == "half_pixel";
  const Plan plan{x[0],
                  x[1],
                  x[2],
                  x[3],
                  y[0],
                  y[2],
                  y[3],
                  o.get_int("sampling_ratio", 0),
                  o.get_double("spatial_scale", 1),
                  half ? 0.5 : 0.0,
                  o.get_string("mode", "") == "max",
                  !half};
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan](Inputs in, Outputs out) -> Result<> {
      for (int64_t r = 0; r < plan.rois; ++r) {
        const int64_t image = input<int64_t>(in, 2)[r];
        if (image < 0 || image >= plan.batch) {
          return Error{ErrorCode::kInvalidArgument, "roi_align: image " + std::to_string(image) +
                                                        " is outside of a batch of " +
                                                        std::to_string(plan.batch)};
        }
        const int64_t size = plan.channels * plan.out_height * plan.out_width;
        KILN_RETURN_IF_ERROR(
            align_roi<T>(plan, input<T>(in, 0) + image * plan.channels * plan.height * plan.width,
                         input<T>(in, 1) + r * 4, output<T>(out, 0) + r * size));
      }
      return Ok();
    });
  });
}

}  // namespace kiln::host
