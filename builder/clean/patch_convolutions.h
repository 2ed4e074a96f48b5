// Convolutions whose windows lie side by side (the kernel's extents are the strides, nothing is
// padded or dilated) and read few channels become MatMuls: every patch of the input is a row, and
// the rows' movement joins the loop in front of them. So begin ViT, Swin and ConvNeXt.
//
// Libraries are slow at such convolutions because channels are what they load together. Where they
// are fast the convolution stays: with 8 channels or more, or where the result is read with its
// channels second, as MatMul does not leave it.
//
// So do convolutions of images of one cell, as those of squeeze and excitation.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::clean {

Result<bool> patch_convolutions(ir::Graph& graph, PassContext& context);

}  // namespace kiln::clean
