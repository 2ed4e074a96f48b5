// grid_sample: x [N, C, spatial...] read at the points of grid [N, out..., r], whose last axis
// holds coordinates in -1 to 1, innermost spatial axis first.
#include <algorithm>
#include <cmath>

#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/window.h"

namespace kiln::host {
namespace {

enum class Mode : uint8_t { kLinear, kNearest, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct Plan {
  Mode mode;
  Padding padding;
  bool align_corners;
  Shape in;  // spatial
  int64_t batch, channels, in_points, out_points;
};

// Mirrors x at both ends of [low, high] until it lies inside.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double past = x < low ? low - x : x - high;
  if (past <= 0) return x;
  const double rest = std::fmod(past, 2 * range);
  const bool from_low = (x < low) == (rest < range);
  const double step = rest < range ? rest : rest - range;
  return from_low ? low + step : high - step;
}

// Cells and weights along one axis for one point; weight 0 where the padding is zero.
struct Taps {
  int64_t cells[4];
  double weights[4];
  int count;
};

class Sampler {
 public:
  explicit Sampler(const Plan& plan) : p_(plan) {}

  Taps along(size_t axis, double coordinate) const {
    const auto extent = static_cast<double>(p_.in[axis]);
    double x = p_.align_corners ? (coordinate + 1) / 2 * (extent - 1)
                                : ((coordinate + 1) * extent - 1) / 2;
    const double low = p_.align_corners ? 0 : -0.5;
    const double high = p_.align_corners ? extent - 1 : extent - 0.5;
    if (p_.mode == Mode::kNearest) x = std::nearbyint(x);
    // A cubic's taps are padded one by one.
    const bool moves = p_.mode != Mode::kCubic;
    if (moves && p_.padding == Padding::kBorder) x = std::clamp(x, 0.0, extent - 1);
    if (moves && p_.padding == Padding::kReflection) x = reflect(x, low, high);
    // Not finite, or so far outside that integers would overflow: all taps are outside.
    if (!(std::abs(x) < 2 * extent + 8)) x = -8;
    Taps taps{};
    const double left = std::floor(x), t = x - left;
    if (p_.mode == Mode::kNearest) {
      add(taps, axis, std::nearbyint(x), 1);
    } else if (p_.mode == Mode::kLinear) {
      add(taps, axis, left, 1 - t);
      add(taps, axis, left + 1, t);
    } else {
      for (int i = -1; i <= 2; ++i) add(taps, axis, left + i, cubic(std::abs(t - i)));
    }
    return taps;
  }

 private:
  static double cubic(double d) {
    constexpr double kA = -0.75;
    if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
    return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
  }

  void add(Taps& taps, size_t axis, double cell, double weight) const {
    const auto extent = static_cast<double>(p_.in[axis]);
    if (p_.padding == Padding::kReflection) {
      cell =
          reflect(cell, p_.align_corners ? 0 : -0.5, p_.align_corners ? extent - 1 : extent - 0.5);
      cell = std::floor(cell + 1e-9);  // a mirror image of a whole number at a half
    }
    const bool inside = cell >= 0 && cell < extent;
    if (!inside && p_.padding == Padding::kZeros) weight = 0;
    taps.cells[taps.count] = static_cast<int64_t>(std::clamp(cell, 0.0, extent - 1));
    taps.weights[taps.count++] = weight;
  }

  const Plan& p_;
};

// Sum over the taps of axes [axis, rank) from the cell `base`.
template <class T>
double gather(const Plan& plan, const std::vector<Taps>& taps, const T* x, size_t axis,
              int64_t base) {
  if (axis == taps.size()) return static_cast<double>(x[base]);
  double sum = 0;
  for (int i = 0; i < taps[axis].count; ++i) {
    if (taps[axis].weights[i] == 0) continue;
    sum += taps[axis].weights[i] *
           gather(plan, taps, x, axis + 1, base * plan.in[axis] + taps[axis].cells[i]);
  }
  return sum;
}

template <class T>
void sample(const Plan& plan, const T* x, const T* grid, T* y) {
  const size_t rank = plan.in.size();
  const Sampler sampler(plan);
  parallel_for(plan.batch * plan.out_points, plan.channels * 32, [&](int64_t begin, int64_t end) {
    std::vector<Taps> taps(rank);
    for (int64_t item = begin; item < end; ++item) {
      for (size_t axis = 0; axis < rank; ++axis) {
        taps[axis] = sampler.along(axis, static_cast<double>(grid[item * rank + rank - 1 - axis]));
      }
      const int64_t image = item / plan.out_points * plan.channels;
      for (int64_t c = image; c < image + plan.channels; ++c) {
        y[c * plan.out_points + item % plan.out_points] =
            static_cast<T>(gather(plan, taps, x + c * plan.in_points, 0, 0));
      }
    }
  });
}

}  // namespace

Result<Types> infer_grid_sample(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 1, in[0].dtype));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 3, 5));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, in[0].rank(), in[0].rank()));
  KILN_RETURN_IF_ERROR(choice_attribute(o, "mode", {"linear", "nearest", "cubic"}));
  KILN_RETURN_IF_ERROR(choice_attribute(o, "padding_mode", {"zeros", "border", "reflection"}));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "align_corners"));
  Shape expected = in[1].shape;
  expected[0] = in[0].shape[0];
  expected.back() = in[0].rank() - 2;
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 1, expected));
  TensorType out{in[0].dtype, {in[0].shape[0], in[0].shape[1]}};
  out.shape.insert(out.shape.end(), expected.begin() + 1, expected.end() - 1);
  if (in[0].elements() == 0 && checked_element_count(out.shape) != 0) {
    return reject(o, "input is " + to_string(in[0]) + ", there is nothing to sample");
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_grid_sample(const Prepare& p) {
  const TensorType &x = p.inputs[0].type, &y = p.outputs[0];
  const Operation& o = p.operation;
  Plan plan{
      static_cast<Mode>(*choice_attribute(o, "mode", {"linear", "nearest", "cubic"})),
      static_cast<Padding>(*choice_attribute(o, "padding_mode", {"zeros", "border", "reflection"})),
      o.get_int("align_corners", 0) == 1,
      {x.shape.begin() + 2, x.shape.end()},
      x.shape[0],
      x.shape[1],
      element_count({x.shape.begin() + 2, x.shape.end()}),
      element_count({y.shape.begin() + 2, y.shape.end()})};
  if (y.elements() == 0) return make_kernel([](Inputs, Outputs) {});
  return visit_float(y.dtype, [&]<class T>() {
    return make_kernel([plan = std::move(plan)](Inputs in, Outputs out) {
      sample<T>(plan, input<T>(in, 0), input<T>(in, 1), output<T>(out, 0));
    });
  });
}

}  // namespace kiln::host
