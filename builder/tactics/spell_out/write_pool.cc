// Pooling: the window's cells as slices of the padded input, folded one by one.
#include <algorithm>

#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::ValueId;

constexpr int64_t kMostCells = 128;  // of a window

struct Window {
  std::vector<int64_t> size, stride, dilation, before, after;  // one entry a spatial axis
  Shape in, out;                                               // spatial extents
  size_t rank() const { return size.size(); }
  int64_t cells() const {
    int64_t count = 1;
    for (int64_t extent : size) count *= extent;
    return count;
  }
};

Window window_of(const Operation& op, const Shape& in, const Shape& out) {
  Window w{op.get_ints("kernel_shape"),
           op.get_ints("strides"),
           op.get_ints("dilations"),
           {},
           {},
           Shape(in.begin() + 2, in.end()),
           Shape(out.begin() + 2, out.end())};
  const auto pads = op.get_ints("pads");
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(w.rank()));
  w.after.assign(pads.begin() + static_cast<int64_t>(w.rank()), pads.end());
  return w;
}

// The window covers the whole input, once.
bool is_global(const Window& w) {
  for (size_t a = 0; a < w.rank(); ++a) {
    if (w.size[a] != w.in[a] || w.out[a] != 1 || w.before[a] != 0 || w.dilation[a] != 1) {
      return false;
    }
  }
  return true;
}

ValueId padded(Formula& f, ValueId x, const Window& w, ValueId fill) {
  const size_t rank = w.rank() + 2;
  ir::Pad pad{Shape(rank, 0), Shape(rank, 0)};
  bool any = false;
  for (size_t a = 0; a < w.rank(); ++a) {
    const int64_t reach = (w.out[a] - 1) * w.stride[a] + (w.size[a] - 1) * w.dilation[a] + 1;
    pad.before[a + 2] = w.before[a];
    pad.after[a + 2] = std::max<int64_t>(0, reach - w.in[a] - w.before[a]);
    any = any || pad.before[a + 2] > 0 || pad.after[a + 2] > 0;
  }
  return any ? f.emit(std::move(pad), {x, fill}) : x;
}

// Folds the cells of every window with `fn`.
ValueId fold(Formula& f, ValueId x, const Window& w, ScalarFn fn) {
  ValueId result{};
  for (int64_t cell = 0; cell < w.cells(); ++cell) {
    ValueId part = x;
    int64_t rest = cell;
    for (size_t a = w.rank(); a-- > 0;) {
      const int64_t tap = rest % w.size[a];
      rest /= w.size[a];
      part = f.slice(part, a + 2, tap * w.dilation[a], w.out[a], w.stride[a]);
    }
    result = cell == 0 ? part : f.apply(fn, {result, part});
  }
  return result;
}

ValueId reduced(Formula& f, ValueId x, const Window& w, ReduceFn fn) {
  std::vector<int64_t> axes;
  for (size_t a = 0; a < w.rank(); ++a) axes.push_back(static_cast<int64_t>(a) + 2);
  return f.emit(ir::Reduce{fn, axes, true}, {x});
}

// How many cells of each window count, along one axis.
std::vector<double> counts(const Window& w, size_t a, bool count_pads) {
  std::vector<double> result;
  const int64_t first = count_pads ? -w.before[a] : 0;
  const int64_t last = w.in[a] + (count_pads ? w.after[a] : 0);
  for (int64_t o = 0; o < w.out[a]; ++o) {
    double count = 0;
    for (int64_t tap = 0; tap < w.size[a]; ++tap) {
      const int64_t at = o * w.stride[a] - w.before[a] + tap * w.dilation[a];
      count += at >= first && at < last;
    }
    result.push_back(count);
  }
  return result;
}

ValueId divided(Formula& f, ValueId sum, const Window& w, bool count_pads) {
  double uniform = 1;
  for (size_t a = 0; a < w.rank(); ++a) {
    const auto count = counts(w, a, count_pads);
    if (std::all_of(count.begin(), count.end(), [&](double c) { return c == count[0]; })) {
      uniform *= count.empty() ? 1 : count[0];
      continue;
    }
    Shape shape(w.rank() + 2, 1);
    shape[a + 2] = w.out[a];
    const ValueId divisors = f.constant(DType::kF64, shape, count);
    sum = f.apply(ScalarFn::kDiv, {sum, f.cast(divisors, f.type(sum).dtype)});
  }
  return f.apply(ScalarFn::kDiv, {sum, f.number(f.type(sum).dtype, uniform)});
}

}  // namespace

Values write_pool(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const TensorType type = f.type(in[0]);
  const Window w = window_of(op, type.shape, out.shape);
  const bool is_max = op.name == "max_pool";
  const bool negative = std::any_of(w.before.begin(), w.before.end(), [](auto p) { return p < 0; });
  if (negative || op.get_int("with_indices", 0) != 0)
    f.refuse("pooling with positions or cropping");
  if (f.error()) return {};
  if (is_global(w) && is_max) return {reduced(f, in[0], w, ReduceFn::kMax)};
  if (!is_global(w) && w.cells() > kMostCells) {
    f.refuse("a pooling window has " + std::to_string(w.cells()) + " cells");
    return {};
  }
  if (is_max) return {fold(f, padded(f, in[0], w, f.lowest(type.dtype)), w, ScalarFn::kMax)};
  const DType wide = bits_of(type.dtype) < 32 ? DType::kF32 : type.dtype;
  const ValueId x = f.cast(in[0], wide);
  const ValueId sum = is_global(w) ? reduced(f, x, w, ReduceFn::kSum)
                                   : fold(f, padded(f, x, w, f.number(wide, 0)), w, ScalarFn::kAdd);
  return {f.cast(divided(f, sum, w, op.get_int("count_include_pad", 0) != 0), type.dtype)};
}

}  // namespace kiln
