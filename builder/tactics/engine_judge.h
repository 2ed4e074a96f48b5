// The judge of both targets: runs a candidate as a one-region engine, on poisoned outputs between
// red zones, compares it with the region's own body run node by node by the reference, then times
// it: on the host by the wall clock, on a GPU by the device's, in a graph and with cold weights.
#pragma once
#include <memory>

#include "builder/tactics/judge.h"
#include "builder/tactics/trial_tensors.h"
#include "engine/engine.h"
#include "formats/engine_file/plan.h"

namespace kiln {

// What candidates are made and run for.
struct JudgedTarget {
  plan::Origin origin;
  LoadOptions load;
  ReferenceOptions reference;
  std::unique_ptr<TrialTensors> tensors = make_host_trial_tensors();  // never null
};

std::unique_ptr<Judge> make_engine_judge(JudgedTarget target);

}  // namespace kiln
