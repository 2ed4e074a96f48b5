// A convolution of few input channels, widened to as many as fast engines read at a time.
#pragma once
#include "builder/tactics/cuda/cudnn_conv.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln {

struct PaddedConv {
  ConvProblem conv;      // the chain's, of the wide operands
  int64_t x = 0, w = 0;  // their numbers in it
  TensorType wide;       // x as the call reads it: more channels, zeros in them
  loop::LoopKernel pad;  // makes it of x
};

// kUnsupported, with the reason: operands that do not have their channels last or are not of 16
// bits, groups, or channels that are enough as they are.
Result<PaddedConv> pad_channels(const ir::Graph& body, const EpilogueChain& chain);

// Rows of `from` bytes become rows of `to`, with zeros at their ends. REQUIRES: whole rows.
SharedBytes widen_rows(const SharedBytes& bytes, size_t from, size_t to);

}  // namespace kiln
