// The reference over and over on one input, of graphs that differ a little: what an earlier run
// computed alike is not computed again.
#pragma once
#include <map>
#include <vector>

#include "builder/verify/reference.h"

namespace kiln {

class IncrementalReference {
 public:
  // Inputs are the same in every run, but for their dtypes.
  IncrementalReference(std::vector<HostTensor> inputs, const ReferenceOptions& options)
      : inputs_(std::move(inputs)), options_(options) {}

  // As run_reference on the inputs, converted to the graph's dtypes. With `remember`, all values of
  // this run serve later ones: an operation of equal content on equal values yields equal results.
  Result<std::vector<HostTensor>> run(const ir::Graph& graph, bool remember = false);

 private:
  class Run;
  std::vector<HostTensor> inputs_;
  ReferenceOptions options_;
  std::map<uint64_t, HostTensor> known_;  // by content hash of what made it
  std::vector<SharedBytes> constants_;    // alive, so that no other constant takes their address
};

}  // namespace kiln
