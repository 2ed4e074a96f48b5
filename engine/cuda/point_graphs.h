// PointGraphs: the graphs of one shape point in one context.
//
// Graphs have fixed addresses, callers' tensors do not. A tensor that only kernels of ours read and
// write may be bound: its launches then take it where the caller has it. All others are copied to
// and from the context's memory, where libraries find them: no library ever sees memory of the
// caller.
#pragma once
#include <optional>
#include <vector>

#include "engine/cuda/cuda_program.h"
#include "engine/cuda/owned.h"

namespace kiln::cuda {

// Where a request's tensors are for the steps: the caller's memory or the context's.
struct IoAddresses {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  friend bool operator==(const IoAddresses&, const IoAddresses&) = default;
};

struct SegmentGraph {
  Graph captured;  // has the nodes of `launches`
  GraphExec exec;
  std::vector<IoLaunch> launches;  // on inputs and outputs
};

class PointGraphs {
 public:
  // Graphs by segment, captured with these addresses.
  PointGraphs(const CudaProgram& program, std::vector<SegmentGraph> graphs, IoAddresses captured);

  CUgraphExec graph(size_t segment) const { return graphs_[segment].exec.get(); }

  // Whether the tensor may be anywhere on the device that is aligned as the context's memory is.
  bool takes_input(size_t i) const { return takes_input_[i]; }
  bool takes_output(size_t i) const { return takes_output_[i]; }

  bool is_bound(const IoAddresses& wanted) const { return bound_ == wanted; }
  bool is_bound_input(size_t i, const void* at) const { return bound_ && bound_->inputs[i] == at; }
  bool is_bound_output(size_t i, const void* at) const {
    return bound_ && bound_->outputs[i] == at;
  }

  // Lets the next launches take these addresses; for tensors that may not be anywhere, those that
  // were captured. Asks the driver only about launches whose tensors have moved.
  Result<> bind(const Spaces& spaces, const IoAddresses& wanted);

 private:
  const CudaProgram& program_;
  std::vector<SegmentGraph> graphs_;
  std::vector<bool> takes_input_, takes_output_;
  std::optional<IoAddresses> bound_;  // none after a failure
};

}  // namespace kiln::cuda
