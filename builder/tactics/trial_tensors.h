// TrialTensors: the inputs and outputs of one region that candidates are tried on, where the target
// has its memory.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "builder/verify/compare.h"
#include "engine/tensor.h"

namespace kiln {

// Where tensors lie in one block of memory; outputs between red zones, which no candidate may
// write.
struct TrialLayout {
  static constexpr size_t kRedZone = 256;  // bytes on each side of an output
  static constexpr std::byte kRedZoneByte{0xCB};
  struct Piece {
    size_t at = 0, bytes = 0;
  };
  std::vector<Piece> inputs, outputs;
  size_t bytes = 0;
};

TrialLayout lay_out_trial(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs);

// Not thread-safe.
class TrialTensors {
 public:
  virtual ~TrialTensors() = default;
  // Takes memory for a region's tensors, and the values. REQUIRES: both stay until the next call.
  virtual Result<> place(std::span<const HostTensor> inputs,
                         std::span<const HostTensor> outputs) = 0;
  virtual MemoryKind memory() const = 0;
  virtual std::byte* input(size_t i) = 0;
  virtual std::byte* output(size_t i) = 0;
  virtual Result<> poison_outputs() = 0;
  // Output `i`, as a candidate has written it, with what place() was given. kVerification:
  // something was written beside it.
  virtual Result<Comparison> check_output(size_t i, const AccuracyPolicy& policy) = 0;
};

std::unique_ptr<TrialTensors> make_host_trial_tensors();

// kVerification if the bytes of a red zone beside output `i` were written.
Result<> check_red_zone(std::span<const std::byte> zone, size_t i);

}  // namespace kiln
