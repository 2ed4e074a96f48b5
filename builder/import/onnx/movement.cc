// Operators that only move elements: all become index maps.
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

std::string number(int64_t value) { return std::to_string(value); }

Outputs transpose(NodeContext& c) {
  auto perm = c.get_ints("perm");
  if (!c.has_attribute("perm")) {
    perm.resize(c.input_type(0).shape.size());
    std::iota(perm.rbegin(), perm.rend(), int64_t{0});
  }
  return one(c.transpose(c.input(0), std::move(perm)));
}

// 0 copies the input's extent (unless allowzero), one -1 takes what is left.
Result<Shape> resolve_shape(NodeContext& c, const Shape& from, Shape target, bool allow_zero) {
  int64_t known = 1;
  auto inferred = target.end();
  for (auto extent = target.begin(); extent != target.end(); ++extent) {
    const auto i = static_cast<size_t>(extent - target.begin());
    if (*extent == 0 && !allow_zero) {
      if (i >= from.size())
        return c.fail("shape copies axis " + number(extent - target.begin()) +
                      " of an input of rank " + number(int64_t(from.size())));
      *extent = from[i];
    }
    if (*extent < -1) return c.fail("shape has the extent " + number(*extent));
    if (*extent == -1) {
      if (inferred != target.end()) return c.fail("shape has more than one -1");
      inferred = extent;
    } else if (__builtin_mul_overflow(known, *extent, &known)) {
      return c.fail("shape " + to_string(target) + " is too large");
    }
  }
  const int64_t count = element_count(from);
  if (inferred != target.end()) *inferred = known > 0 ? count / known : 0;
  if (checked_element_count(target) != count) {
    return c.fail("input " + to_string(from) + " has " + number(count) +
                  " elements, which do not fill the shape " + to_string(target));
  }
  return target;
}

Outputs reshape(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Shape wanted, c.known_ints(1, "shape"));
  const bool allow_zero = c.get_int("allowzero", 0) != 0;
  KILN_ASSIGN_OR_RETURN(const Shape shape,
                        resolve_shape(c, c.input_type(0).shape, wanted, allow_zero));
  return one(c.reshape(c.input(0), shape));
}

Outputs flatten(NodeContext& c) {
  const Shape shape = c.input_type(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = c.get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    return c.fail("axis " + number(axis) + " is outside of rank " + number(rank));
  }
  if (axis < 0) axis += rank;
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
  };
  return one(c.reshape(c.input(0), {product(shape.begin(), shape.begin() + axis),
                                    product(shape.begin() + axis, shape.end())}));
}

Outputs squeeze(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(auto axes, c.axes(1, 13, c.rank(x)));
  const bool given = c.opset() < 13 ? c.has_attribute("axes") : c.has(1);
  if (!given) {
    for (int64_t axis = 0; axis < c.rank(x); ++axis) {
      if (c.shape(x)[at(axis)] == 1) axes.push_back(axis);
    }
  }
  return one(c.squeeze(x, std::move(axes)));
}

Outputs unsqueeze(NodeContext& c) {
  const ValueId x = c.input(0);
  std::vector<int64_t> axes = c.get_ints("axes");
  if (c.opset() >= 13) {
    KILN_ASSIGN_OR_RETURN(axes, c.known_ints(1, "axes"));
  }
  const int64_t rank = c.rank(x) + static_cast<int64_t>(axes.size());
  KILN_ASSIGN_OR_RETURN(axes, c.normalise_axes(std::move(axes), rank));
  return one(c.unsqueeze(x, std::move(axes)));
}

Outputs expand(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(Shape target, c.known_ints(1, "shape"));
  const Shape& shape = c.input_type(0).shape;
  if (target.size() < shape.size()) target.insert(target.begin(), shape.size() - target.size(), 1);
  // A 1 in the target keeps the input's extent.
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t& extent = target[target.size() - shape.size() + i];
    if (extent == 1) extent = shape[i];
  }
  return one(c.broadcast(c.input(0), std::move(target)));
}

// Each repeated axis d becomes [repeat, d] by broadcasting, then one axis again.
Outputs tile(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto repeats, c.known_ints(1, "repeats"));
  const Shape shape = c.input_type(0).shape;
  if (repeats.size() != shape.size()) {
    return c.fail("repeats has " + number(int64_t(repeats.size())) +
                  " entries, the input's rank is " + number(int64_t(shape.size())));
  }
  Shape split, repeated, merged;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0) return c.fail("repeats has the entry " + number(repeats[i]));
    if (repeats[i] != 1) {
      split.push_back(1);
      repeated.push_back(repeats[i]);
    }
    split.push_back(shape[i]);
    repeated.push_back(shape[i]);
    int64_t extent = 0;
    if (__builtin_mul_overflow(repeats[i], shape[i], &extent))
      return c.fail("repeats is too large");
    merged.push_back(extent);
  }
  return one(c.reshape(c.broadcast(c.reshape(c.input(0), split), repeated), merged));
}

Outputs concat(NodeContext& c) {
  const auto parts = c.inputs();
  if (parts.empty()) return c.fail("found no inputs, expected at least 1");
  KILN_RETURN_IF_ERROR(c.require_same_dtype(parts));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 1, c.rank(parts[0])));
  return one(c.concat(parts, axis));
}

Result<std::vector<int64_t>> split_sizes(NodeContext& c, int64_t extent) {
  if (c.opset() >= 13 ? c.has(1) : c.has_attribute("split")) {
    if (c.opset() < 13) return c.get_ints("split");
    return c.known_ints(1, "split");
  }
  const int64_t parts = c.opset() >= 18 && c.has_attribute("num_outputs")
                            ? c.get_int("num_outputs", 0)
                            : static_cast<int64_t>(c.output_count());
  if (parts < 1 || parts > (1 << 20)) return c.fail("num_outputs is " + number(parts));
  if (c.opset() < 18 && extent % parts != 0) {
    return c.fail("extent " + number(extent) + " does not split into " + number(parts) +
                  " equal parts");
  }
  const int64_t size = (extent + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t left = extent, i = 0; i < parts; ++i) {
    sizes.push_back(std::min(size, left));
    left -= sizes.back();
  }
  return sizes;
}

Outputs split(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.rank(x)));
  const int64_t extent = c.shape(x).at(at(axis));
  KILN_ASSIGN_OR_RETURN(const auto sizes, split_sizes(c, extent));
  int64_t start = 0;
  std::vector<ValueId> parts;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - start) {
      return c.fail("split sizes go beyond the extent " + number(extent) + " of axis " +
                    number(axis));
    }
    parts.push_back(c.slice_axis(x, axis, start, size));
    start += size;
  }
  if (start != extent) {
    return c.fail("split sizes add up to " + number(start) + ", axis " + number(axis) + " has " +
                  number(extent));
  }
  return parts;
}

struct SliceRange {
  int64_t start, size;
};

// numpy's rules: negative positions count from the end, then both are clamped.
SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto wrap = [extent](int64_t i) { return i < 0 ? i + extent : i; };
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  start = std::clamp(wrap(start), step > 0 ? int64_t{0} : int64_t{-1}, high);
  end = std::clamp(wrap(end), low, high);
  if (step < 0 && start < 0) return {0, 0};
  const int64_t distance = step > 0 ? end - start : start - end;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  if (distance <= 0) return {0, 0};
  return {start, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1)};
}

Outputs slice(NodeContext& c) {
  const ValueId x = c.input(0);
  std::vector<int64_t> begins = c.get_ints("starts"), ends = c.get_ints("ends");
  std::vector<int64_t> axes = c.get_ints("axes"), steps;
  if (c.opset() >= 10) {
    KILN_ASSIGN_OR_RETURN(begins, c.known_ints(1, "starts"));
    KILN_ASSIGN_OR_RETURN(ends, c.known_ints(2, "ends"));
    if (c.has(3)) {
      KILN_ASSIGN_OR_RETURN(axes, c.known_ints(3, "axes"));
    }
    if (c.has(4)) {
      KILN_ASSIGN_OR_RETURN(steps, c.known_ints(4, "steps"));
    }
  }
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  if (steps.empty()) steps.assign(begins.size(), 1);
  if (ends.size() != begins.size() || axes.size() != begins.size() ||
      steps.size() != begins.size()) {
    return c.fail("starts, ends, axes and steps differ in length");
  }
  const Shape shape = c.shape(x);
  std::vector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
  Shape sizes = shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const int64_t axis, c.normalise_axis(axes[i], c.rank(x)));
    if (steps[i] == 0) return c.fail("the step of axis " + number(axis) + " is 0");
    const auto range = slice_range(begins[i], ends[i], steps[i], shape[at(axis)]);
    starts[at(axis)] = range.start;
    sizes[at(axis)] = range.size;
    strides[at(axis)] = range.size > 1 ? steps[i] : 1;
  }
  return one(c.slice(x, starts, sizes, strides));
}

// Positions of the input that an axis of a padded output reads, for modes other than constant.
Result<std::vector<int64_t>> padded_positions(NodeContext& c, const std::string& mode,
                                              int64_t extent, int64_t before, int64_t size) {
  std::vector<int64_t> positions;
  for (int64_t i = -before; i < size - before; ++i) {
    const bool inside = i >= 0 && i < extent;
    int64_t position = i;
    if (!inside && extent == 0) return c.fail("mode " + mode + " cannot pad an empty axis");
    if (mode == "edge") position = std::clamp<int64_t>(i, 0, extent - 1);
    if (mode == "wrap") position = ((i % extent) + extent) % extent;
    if (mode == "reflect" && !inside) position = i < 0 ? -i : 2 * (extent - 1) - i;
    if (position < 0 || position >= extent) {
      return c.fail("reflecting pads of axis with extent " + number(extent) +
                    " reach further than " + number(extent - 1));
    }
    positions.push_back(position);
  }
  return positions;
}

struct PadAmounts {
  std::vector<int64_t> before, after;
};

Result<PadAmounts> pad_amounts(NodeContext& c) {
  const auto rank = c.input_type(0).shape.size();
  std::vector<int64_t> pads = c.get_ints(c.has_attribute("paddings") ? "paddings" : "pads"), axes;
  if (c.opset() >= 11) {
    KILN_ASSIGN_OR_RETURN(pads, c.known_ints(1, "pads"));
  }
  if (c.opset() >= 18 && c.has(3)) {
    KILN_ASSIGN_OR_RETURN(axes, c.known_ints(3, "axes"));
  } else {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  if (pads.size() != 2 * axes.size()) {
    return c.fail("pads has " + number(int64_t(pads.size())) + " entries, expected " +
                  number(int64_t(2 * axes.size())));
  }
  PadAmounts amounts{std::vector<int64_t>(rank), std::vector<int64_t>(rank)};
  for (size_t i = 0; i < axes.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const int64_t axis, c.normalise_axis(axes[i], int64_t(rank)));
    amounts.before[at(axis)] = pads[i];
    amounts.after[at(axis)] = pads[axes.size() + i];
  }
  return amounts;
}

// Negative amounts crop.
ValueId crop(NodeContext& c, ValueId x, PadAmounts& amounts) {
  std::vector<int64_t> starts;
  Shape sizes = c.shape(x);
  for (size_t i = 0; i < sizes.size(); ++i) {
    starts.push_back(std::max<int64_t>(-amounts.before[i], 0));
    sizes[i] -= starts[i] + std::max<int64_t>(-amounts.after[i], 0);
    if (sizes[i] < 0) (void)c.fail("pads remove more than axis " + number(int64_t(i)) + " has");
    amounts.before[i] = std::max<int64_t>(amounts.before[i], 0);
    amounts.after[i] = std::max<int64_t>(amounts.after[i], 0);
  }
  return c.slice(x, starts, sizes);
}

Outputs pad(NodeContext& c) {
  constexpr int64_t kMaxPositions = int64_t{1} << 24;
  const std::string mode = c.get_string("mode", "constant");
  KILN_ASSIGN_OR_RETURN(auto amounts, pad_amounts(c));
  ValueId x = c.input(0);
  if (mode == "constant") {
    ValueId value = c.opset() < 11 ? c.scalar(c.get_float("value", 0), c.dtype(x)) : kNoValue;
    if (c.opset() >= 11) value = c.has(2) ? c.reshape(c.input(2), {}) : c.scalar(0, c.dtype(x));
    x = crop(c, x, amounts);
    return one(c.pad(x, amounts.before, amounts.after, value));
  }
  if (mode != "edge" && mode != "reflect" && mode != "wrap") {
    return c.fail("mode is '" + mode + "', expected constant, edge, reflect or wrap");
  }
  for (int64_t axis = 0; axis < c.input_type(0).rank() && !c.failed(); ++axis) {
    const int64_t before = amounts.before[at(axis)], after = amounts.after[at(axis)];
    if (before == 0 && after == 0) continue;
    const int64_t extent = c.shape(x)[at(axis)];
    const int64_t size = extent + before + after;
    if (size < 0 || size > kMaxPositions || before < -kMaxPositions || after < -kMaxPositions) {
      return c.fail("pads of axis " + number(axis) + " are " + number(before) + " and " +
                    number(after) + " for the extent " + number(extent));
    }
    KILN_ASSIGN_OR_RETURN(const auto positions, padded_positions(c, mode, extent, before, size));
    x = c.gather(x, c.ints(positions), axis);
  }
  return one(x);
}

Outputs gather(NodeContext& c) {
  constexpr int64_t kMaxChecked = 1 << 20;
  const ValueId x = c.input(0), indices = c.input(1);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.rank(x)));
  const int64_t extent = c.shape(x).at(at(axis));
  if (c.type(indices).elements() <= kMaxChecked) {
    const auto known = c.constant_of(indices);
    for (int64_t index : known ? to_ints(*known) : std::vector<int64_t>()) {
      if (index >= -extent && index < extent) continue;
      return c.fail("index " + number(index) + " is outside of axis " + number(axis) +
                    " with extent " + number(extent));
    }
  }
  return one(c.gather(x, indices, axis));
}

struct Blocks {
  int64_t batch, channels, height, width, block;
};

Result<Blocks> blocks(NodeContext& c) {
  const Shape& shape = c.input_type(0).shape;
  const int64_t block = c.get_int("blocksize", 0);
  if (shape.size() != 4 || block < 1 || block > (1 << 15)) {
    return c.fail("input is " + to_string(c.input_type(0)) + " and blocksize " + number(block) +
                  ", expected rank 4 and at least 1");
  }
  return Blocks{shape[0], shape[1], shape[2], shape[3], block};
}

Outputs depth_to_space(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Blocks b, blocks(c));
  const int64_t area = b.block * b.block, depth = b.channels / area;
  const bool crd = c.get_string("mode", "DCR") == "CRD";
  const Shape split = crd ? Shape{b.batch, depth, b.block, b.block, b.height, b.width}
                          : Shape{b.batch, b.block, b.block, depth, b.height, b.width};
  const ValueId parts = c.reshape(c.input(0), split);
  const ValueId moved = c.transpose(
      parts, crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  return one(c.reshape(moved, {b.batch, depth, b.height * b.block, b.width * b.block}));
}

Outputs space_to_depth(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Blocks b, blocks(c));
  const int64_t height = b.height / b.block, width = b.width / b.block;
  const bool crd = c.get_string("mode", "DCR") == "CRD";
  const ValueId parts =
      c.reshape(c.input(0), {b.batch, b.channels, height, b.block, width, b.block});
  const ValueId moved = c.transpose(
      parts, crd ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  return one(c.reshape(moved, {b.batch, b.channels * b.block * b.block, height, width}));
}

constexpr Handler kHandlers[] = {
    {"", "Concat", concat},
    {"", "DepthToSpace", depth_to_space},
    {"", "Expand", expand},
    {"", "Flatten", flatten},
    {"", "Gather", gather},
    {"", "Pad", pad},
    {"", "Reshape", reshape},
    {"", "Slice", slice},
    {"", "SpaceToDepth", space_to_depth},
    {"", "Split", split},
    {"", "Squeeze", squeeze},
    {"", "Tile", tile},
    {"", "Transpose", transpose},
    {"", "Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Handler> movement_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
