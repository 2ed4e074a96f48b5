// What narrow storage does to a model's outputs: runs the graph as retyped for a choice of regions
// and compares with the untouched model.
#pragma once
#include <limits>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/precision/retype_graph.h"
#include "builder/precision/storage.h"
#include "builder/verify/incremental_reference.h"

namespace kiln::precision {

// An input and the right answer.
struct Probe {
  std::vector<HostTensor> inputs, outputs;  // in the order of the graph's
};

class DamageMeter {
 public:
  // `graph`, of regions in f32, outlives the meter. REQUIRES: at least one probe.
  DamageMeter(const ir::Graph& graph, DType narrow, DType io, std::vector<Probe> probes,
              const ReferenceOptions& options);

  // 1 - cosine of the worst float output over all probes, when regions with a word in `keep` (by
  // node) stay f32. What is not finite where it should be counts as 1. Probes that were worst last
  // come first, and none is run once the damage is over `enough`.
  Result<double> damage(const std::vector<std::string>& keep,
                        double enough = std::numeric_limits<double>::infinity());
  // The same on the probe that was worst last.
  Result<double> damage_on_worst(const std::vector<std::string>& keep);

 private:
  struct Run {
    Probe probe;
    IncrementalReference reference;
  };
  Result<ir::Graph> retyped(const std::vector<std::string>& keep);
  static Result<double> damage_on(Run& run, const ir::Graph& graph);

  const ir::Graph& graph_;
  DType narrow_, io_;
  std::vector<Run> runs_;  // the worst first
  bool worst_remembers_ = false;
  ConvertedConstants constants_;
};

}  // namespace kiln::precision
