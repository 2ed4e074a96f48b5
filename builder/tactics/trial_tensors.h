// TrialTensors: the inputs and outputs of one region that candidates are tried on.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "builder/verify/reference.h"
#include "engine/engine.h"

namespace kiln {

// Outputs lie between red zones, which no candidate may write.
class TrialTensors {
 public:
  // Lays out a region's tensors, for engines that may come.
  void lay_out(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs);

  // Takes memory that the engine's GPU copies from and to at full speed, and the inputs' bytes;
  // for a region this happens once. REQUIRES: what lay_out() was given is still there.
  Result<> place(const Engine& engine);

  std::byte* input(size_t i) { return block_.get() + inputs_[i].at; }
  std::byte* output(size_t i) { return block_.get() + outputs_[i].at; }
  void poison_outputs();
  // Whether nothing was written beside output `i` since.
  bool intact(size_t i) const;

 private:
  struct Piece {
    size_t at = 0, bytes = 0;
  };
  std::span<const HostTensor> given_;
  std::vector<Piece> inputs_, outputs_;
  size_t bytes_ = 0;
  bool filled_ = false;
  std::shared_ptr<std::byte> block_;  // kept from region to region: it is slow to take
  size_t block_bytes_ = 0;
};

}  // namespace kiln
