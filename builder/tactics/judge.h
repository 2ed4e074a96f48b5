// Judge: verifies and times one lowered candidate. The host has one, the CUDA target will have one,
// and a test has a fake, so selection is tested without a clock.
#pragma once
#include <string>

#include "builder/tactics/tactic.h"
#include "formats/timing_cache/timing_cache.h"

namespace kiln {

class Judge {
 public:
  virtual ~Judge() = default;
  // Called once before the candidates of a region are judged: makes inputs and reference outputs.
  virtual Result<> begin(const TacticQuery& query) = 0;
  // `best_us` is the fastest right candidate's time so far (infinity: none): one that is far
  // slower need not be timed with care. A failure to run is told in Timing::error.
  virtual Timing judge(const Lowered& lowered, double best_us) = 0;
};

}  // namespace kiln
