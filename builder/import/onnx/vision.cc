// GridSample, RoiAlign, DeformConv, Col2Im.
#include "builder/import/onnx/contraction.h"
#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

Outputs grid_sample(NodeContext& c) {
  std::string mode = c.get_string("mode", c.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";  // the names before opset 20
  if (mode == "bicubic") mode = "cubic";
  Operation op{"grid_sample", {}};
  op.set("mode", mode)
      .set("padding_mode", c.get_string("padding_mode", "zeros"))
      .set("align_corners", c.get_int("align_corners", 0));
  const ValueId x = c.input(0);
  return c.opaque(std::move(op), {x, c.cast(c.input(1), c.dtype(x))});
}

Outputs roi_align(NodeContext& c) {
  const char* coordinates = c.opset() < 16 ? "output_half_pixel" : "half_pixel";
  Operation op{"roi_align", {}};
  op.set("mode", c.get_string("mode", "avg"))
      .set("coordinate_transformation_mode",
           c.get_string("coordinate_transformation_mode", coordinates))
      .set("output_height", c.get_int("output_height", 1))
      .set("output_width", c.get_int("output_width", 1))
      .set("sampling_ratio", c.get_int("sampling_ratio", 0))
      .set("spatial_scale", c.get_float("spatial_scale", 1));
  return c.opaque(std::move(op), {c.input(0), c.input(1), c.input(2)});
}

Outputs deform_conv(NodeContext& c) {
  const ValueId x = c.input(0), w = c.input(1), offset = c.input(2);
  KILN_ASSIGN_OR_RETURN(const ir::Conv conv, read_conv(c, c.shape(x), c.shape(w)));
  if (c.rank(offset) != 4 || c.rank(x) != 4) {
    return c.unsupported("input is " + to_string(c.type(x)) + " and offset " +
                         to_string(c.type(offset)) + ", only two spatial axes are supported");
  }
  Operation op{"deform_conv", {}};
  op.set("strides", conv.strides)
      .set("dilations", conv.dilations)
      .set("pads_begin", conv.pads_begin)
      .set("pads_end", conv.pads_end)
      .set("groups", conv.groups)
      .set("offset_group", c.get_int("offset_group", 1));
  const Shape o = c.shape(offset);
  const ValueId bias = c.has(3) ? c.input(3) : c.filled(0, {c.dtype(x), {c.shape(w)[0]}});
  const ValueId mask =
      c.has(4) ? c.input(4) : c.filled(1, {c.dtype(x), {o[0], o[1] / 2, o[2], o[3]}});
  return c.opaque(std::move(op), {x, w, offset, bias, mask});
}

Outputs col2im(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto image, c.known_ints(1, "image_shape"));
  KILN_ASSIGN_OR_RETURN(const auto block, c.known_ints(2, "block_shape"));
  const auto list = [&](const char* name, size_t count, int64_t fallback) {
    return c.has_attribute(name) ? c.get_ints(name) : std::vector<int64_t>(count, fallback);
  };
  Operation op{"col2im", {}};
  op.set("image_shape", image)
      .set("block_shape", block)
      .set("strides", list("strides", block.size(), 1))
      .set("dilations", list("dilations", block.size(), 1))
      .set("pads", list("pads", 2 * block.size(), 0));
  return c.opaque(std::move(op), {c.input(0)});
}

constexpr Handler kHandlers[] = {
    {"", "Col2Im", col2im},
    {"", "DeformConv", deform_conv},
    {"", "GridSample", grid_sample},
    {"", "RoiAlign", roi_align},
};

}  // namespace

std::span<const Handler> vision_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
