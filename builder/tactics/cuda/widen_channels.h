// A convolution of few input channels as one of more: fast engines read 16 bytes of them at a time.
#pragma once
#include "builder/tactics/cuda/cudnn_conv.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln {

struct WideConv {
  ConvProblem conv;         // the chain's, of the wide operands
  int64_t x = 0, w = 0;     // their numbers in it
  TensorType wide;          // x as the call reads it
  loop::LoopKernel widen;   // makes it of x
  ir::Graph widen_weights;  // makes the call's weights of w
};

// Zeros become channels. kUnsupported, with the reason: operands that do not have their channels
// last or are not of 16 bits, groups, or channels that are enough as they are.
Result<WideConv> pad_channels(const ir::Graph& body, const EpilogueChain& chain);

// The cells of a block as wide as the stride become channels of one cell ("space to depth"): a 7x7
// convolution of stride 2 and 3 channels is one of 4x4, stride 1 and 12, padded to 16. Padding is
// made with the blocks. Refuses what pad_channels() does, strides of 1 or that differ, dilations,
// and blocks that make more channels than gain anything.
Result<WideConv> fold_strides(const ir::Graph& body, const EpilogueChain& chain);

}  // namespace kiln
