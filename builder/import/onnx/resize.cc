// Resize and Upsample: sizes, scales and the aspect-ratio policy become one size and one scale for
// each axis.
#include <algorithm>
#include <cmath>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

struct Extents {
  std::vector<int64_t> sizes;
  std::vector<double> scales;
};

// The axes that the model lists, sorted or not; all of them by default.
Result<std::vector<int64_t>> listed_axes(NodeContext& c, int64_t rank) {
  auto axes = c.get_ints("axes");
  if (!c.has_attribute("axes")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (int64_t& axis : axes) {
    KILN_ASSIGN_OR_RETURN(axis, c.normalise_axis(axis, rank));
  }
  return axes;
}

Result<> check_count(NodeContext& c, const char* what, size_t found, size_t expected) {
  if (found == expected) return Ok();
  return c.fail(std::string(what) + " has " + number(static_cast<int64_t>(found)) +
                " entries, expected " + number(static_cast<int64_t>(expected)));
}

Result<> apply_scales(NodeContext& c, const std::vector<int64_t>& axes,
                      const std::vector<double>& scales, Extents& extents) {
  KILN_RETURN_IF_ERROR(check_count(c, "scales", scales.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const double size = std::floor(static_cast<double>(extents.sizes[axis]) * scales[i]);
    if (!(scales[i] > 0) || size > double{1 << 30}) {
      return c.fail("scales has the entry " + std::to_string(scales[i]) + " for axis " +
                    number(axes[i]));
    }
    extents.scales[axis] = scales[i];
    extents.sizes[axis] = static_cast<int64_t>(size);
  }
  return Ok();
}

Result<> apply_sizes(NodeContext& c, const std::vector<int64_t>& axes,
                     const std::vector<int64_t>& sizes, Extents& extents) {
  KILN_RETURN_IF_ERROR(check_count(c, "sizes", sizes.size(), axes.size()));
  const std::string policy = c.get_string("keep_aspect_ratio_policy", "stretch");
  const bool larger = policy == "not_smaller";
  if (!larger && policy != "stretch" && policy != "not_larger") {
    return c.fail("keep_aspect_ratio_policy is '" + policy +
                  "', expected stretch, not_larger or not_smaller");
  }
  double common = larger ? 0 : INFINITY;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (sizes[i] < 0) return c.fail("sizes has the entry " + number(sizes[i]));
    const double scale = static_cast<double>(sizes[i]) / static_cast<double>(extents.sizes[axis]);
    common = larger ? std::max(common, scale) : std::min(common, scale);
    extents.scales[axis] = scale;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (policy == "stretch") {
      extents.sizes[axis] = sizes[i];
      continue;
    }
    const double exact = common * static_cast<double>(extents.sizes[axis]);
    extents.scales[axis] = common;
    extents.sizes[axis] = static_cast<int64_t>(std::floor(exact + 0.5));
  }
  return Ok();
}

// roi covers the listed axes: starts, then ends. All axes: the same with [0, 1] elsewhere.
Result<std::vector<double>> read_roi(NodeContext& c, const std::vector<int64_t>& axes,
                                     int64_t rank) {
  KILN_ASSIGN_OR_RETURN(const auto given, c.known_floats(1, "roi"));
  KILN_RETURN_IF_ERROR(check_count(c, "roi", given.size(), 2 * axes.size()));
  std::vector<double> roi(static_cast<size_t>(2 * rank), 0.0);
  std::fill(roi.begin() + rank, roi.end(), 1.0);
  for (size_t i = 0; i < axes.size(); ++i) {
    roi[static_cast<size_t>(axes[i])] = given[i];
    roi[static_cast<size_t>(axes[i] + rank)] = given[i + axes.size()];
  }
  return roi;
}

// An optional tensor that may also be present but empty.
Result<bool> is_given(NodeContext& c, size_t input) {
  if (!c.has(input)) return false;
  return c.input_type(input).elements() > 0;
}

Outputs emit_resize(NodeContext& c, Extents extents, std::vector<double> roi) {
  Operation resize{"resize", {}};
  const bool old = c.opset() < 11;
  const std::string mode = c.get_string("mode", "nearest");
  resize.set("mode", mode == "bilinear" ? "linear" : mode)
      .set("coordinate_transformation_mode",
           old ? "asymmetric" : c.get_string("coordinate_transformation_mode", "half_pixel"))
      .set("nearest_mode", old ? "floor" : c.get_string("nearest_mode", "round_prefer_floor"))
      .set("antialias", c.get_int("antialias", 0))
      .set("exclude_outside", c.get_int("exclude_outside", 0))
      .set("cubic_coeff_a", c.get_float("cubic_coeff_a", -0.75))
      .set("extrapolation_value", c.get_float("extrapolation_value", 0))
      .set("sizes", std::move(extents.sizes))
      .set("scales", std::move(extents.scales))
      .set("roi", std::move(roi));
  return c.opaque(std::move(resize), {c.input(0)});
}

Outputs resize(NodeContext& c) {
  const TensorType in = c.input_type(0);
  Extents extents{in.shape, std::vector<double>(in.shape.size(), 1.0)};
  KILN_ASSIGN_OR_RETURN(const auto axes, listed_axes(c, in.rank()));
  const bool old = c.opset() < 11;  // (x, scales)
  const size_t scales_input = old ? 1 : 2;
  KILN_ASSIGN_OR_RETURN(const bool by_scales, is_given(c, scales_input));
  KILN_ASSIGN_OR_RETURN(const bool by_sizes, is_given(c, 3));
  if (by_scales == by_sizes && !in.shape.empty()) {
    return c.fail(by_scales ? "both scales and sizes are given, expected one of them"
                            : "neither scales nor sizes are given");
  }
  if (by_scales) {
    KILN_ASSIGN_OR_RETURN(const auto scales, c.known_floats(scales_input, "scales"));
    KILN_RETURN_IF_ERROR(apply_scales(c, axes, scales, extents));
  } else {
    KILN_ASSIGN_OR_RETURN(const auto sizes, c.known_ints(3, "sizes"));
    KILN_RETURN_IF_ERROR(apply_sizes(c, axes, sizes, extents));
  }
  std::vector<double> roi;
  if (c.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    KILN_ASSIGN_OR_RETURN(roi, read_roi(c, axes, in.rank()));
  }
  return emit_resize(c, std::move(extents), std::move(roi));
}

Outputs upsample(NodeContext& c) {
  const TensorType in = c.input_type(0);
  Extents extents{in.shape, std::vector<double>(in.shape.size(), 1.0)};
  KILN_ASSIGN_OR_RETURN(const auto axes, listed_axes(c, in.rank()));
  std::vector<double> scales = c.get_floats("scales");
  if (c.opset() >= 9) {
    KILN_ASSIGN_OR_RETURN(scales, c.known_floats(1, "scales"));
  }
  KILN_RETURN_IF_ERROR(apply_scales(c, axes, scales, extents));
  return emit_resize(c, std::move(extents), {});
}

constexpr Handler kHandlers[] = {
    {"", "Resize", resize},
    {"", "Upsample", upsample},
};

}  // namespace

std::span<const Handler> resize_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
