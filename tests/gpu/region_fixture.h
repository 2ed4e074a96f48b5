// One region as an engine of its own, run twice in a row, with and without overlap of its kernels.
#pragma once
#include <functional>

#include "builder/cuda/cuda_target.h"
#include "builder/tactics/lowered.h"
#include "builder/tactics/tactic.h"
#include "engine/engine.h"
#include "tests/gpu/gpu_fixture.h"

namespace kiln::testing {

class RegionsOnGpu : public OnGpu {
 protected:
  // A contraction, its inputs, and whether its second one is a constant.
  struct Trial {
    ir::Region region;
    std::vector<HostTensor> inputs;
    bool constant_weights = true;

    TensorType result() const;
  };

  void SetUp() override;

  // With made-up inputs.
  static Trial trial_of(ir::Graph body, bool constant_weights);
  // Lives no longer than the trial.
  TacticQuery query(const Trial& trial) const;
  // The result is the same bits in `runs` runs with overlap and as many without; `expect_right` is
  // called with the first.
  void check(const Trial& trial, const Lowered& lowered, int runs,
             const std::function<void(const Block&)>& expect_right) const;

  CudaTarget target_;

 private:
  Result<Engine> engine_of(const Trial& trial, const Lowered& lowered, bool overlap) const;
};

}  // namespace kiln::testing
