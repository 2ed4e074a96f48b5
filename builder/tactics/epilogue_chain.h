// EpilogueChain: the body of an anchored region as a library sees it, if it is that simple: one
// contraction or convolution, then a chain of bias, residual and activations.
#pragma once
#include <vector>

#include "builder/ir/graph.h"

namespace kiln {

// An input or a constant of the body, as something in the chain reads it.
struct ChainOperand {
  ir::ValueId value;
  // It is stored N, spatial..., C and read through a transpose that puts C second.
  bool channels_last = false;
};

struct ChainStep {
  enum class Kind : uint8_t {
    kBias,  // one value a channel (of a MatMul: a column)
    kAdd,   // of the result's shape
    kRelu,
    kClip,  // to low..high
    kSigmoid,
    kTanh,
    kSwish,  // x * sigmoid(x)
    kGelu,   // the erf form
  };
  Kind kind;
  ChainOperand operand = {};  // of kBias and kAdd
  float low = 0, high = 0;    // of kClip
};

struct EpilogueChain {
  ir::NodeId anchor;
  std::vector<ChainOperand> operands;  // the anchor's first two
  std::vector<ChainStep> steps;        // an anchor's own bias is the first
  bool channels_last = false;          // the result is stored so
  bool casts = false;  // between float types, on the chain or in front of an operand
};

// The permutations between N, C, spatial... and N, spatial..., C.
std::vector<int64_t> channels_second(int64_t rank);
std::vector<int64_t> channels_last(int64_t rank);

// The error is the one-line reason why the body is no such chain.
Result<EpilogueChain> match_epilogue_chain(const ir::Graph& body);
// The anchor with its own bias alone, whatever follows it; its result is stored as its first
// operand is.
Result<EpilogueChain> match_anchor(const ir::Graph& body);

}  // namespace kiln
