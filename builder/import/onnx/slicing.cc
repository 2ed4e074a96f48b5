// Slice and Split.
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

std::string number(int64_t value) { return std::to_string(value); }

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

constexpr Handler kHandlers[] = {
    {"", "Slice", slice},
    {"", "Split", split},
};

}  // namespace

std::span<const Handler> slicing_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
