// Convolutions by cuDNN: alone, or with the epilogue that follows them in a region.
#pragma once
#include <string>
#include <vector>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/cudnn_problem.h"
#include "builder/tactics/epilogue_chain.h"
#include "builder/tactics/lowered.h"

namespace kiln {

// A Conv or ConvTranspose; inputs x, w and, where it has one, the bias.
struct ConvRequest {
  ir::Op op;
  std::vector<TensorType> inputs;
  TensorType output;
};

// The call's inputs and outputs are left to the caller, in the order of the request.
struct ConvChoice {
  LibraryCall call;
  std::string key;  // says all that makes the call again
};

// Best first, at most `most`. kUnsupported, with the reason, where cuDNN has no engine for it.
Result<std::vector<ConvChoice>> cudnn_choices(const CudaTools& tools, const ConvRequest& request,
                                              size_t most);

// A problem and, by its tensors' numbers, which values of the body are its operands.
struct ConvProblem {
  CudnnProblem problem;
  std::vector<std::pair<int64_t, ir::ValueId>> inputs;
  int64_t output = 0;
};

// The order of an epilogue's additions: engines that are compiled in advance know conv + residual
// + bias + activation, those that cuDNN compiles take any chain.
enum class EpilogueOrder : uint8_t { kResidualFirst, kAsWritten };

// The whole chain. kUnsupported: a rank or a padding that cuDNN has no words for, or an order that
// the chain cannot be brought into.
Result<ConvProblem> fused_problem(const ir::Graph& body, const EpilogueChain& chain,
                                  EpilogueOrder order);
// The same for a chain of match_anchor(): the result is the anchor's, with its bias if that is
// among the steps.
Result<ConvProblem> anchor_problem(const ir::Graph& body, const EpilogueChain& chain);

}  // namespace kiln
