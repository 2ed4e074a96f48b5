// Pad: constants become ir::Pad, other modes gather the positions that they repeat.
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

std::string number(int64_t value) { return std::to_string(value); }

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

constexpr int64_t kMaxAmount = int64_t{1} << 60;

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
  for (int64_t amount : pads) {
    if (amount < -kMaxAmount || amount > kMaxAmount) {
      return c.fail("pads has the entry " + number(amount) + ", expected -2^60 to 2^60");
    }
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

constexpr Handler kHandlers[] = {
    {"", "Pad", pad},
};

}  // namespace

std::span<const Handler> padding_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
