// Outcome: everything a run found out, and how it is told.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/engine-run/benchmark.h"
#include "apps/engine-run/compare.h"
#include "apps/engine-run/gpu_state.h"
#include "engine/engine.h"

namespace kiln::run {

struct Outcome {
  std::string engine;  // the file
  EngineInfo info;
  ShapePointInfo point;  // that served the request
  int64_t rows = 0;      // of the request; 0: no batch dimension
  std::vector<NamedArray> inputs, outputs;
  bool random_inputs = false;
  uint64_t seed = 0;
  std::vector<Comparison> comparisons;
  std::optional<Measurements> measurements;
  // Of the GPU after the warm-up and behind the last query, where it can be asked.
  std::optional<std::pair<GpuState, GpuState>> gpu;
  BenchmarkOptions timing;
  int contexts = 1;
  std::vector<std::string> notes, warnings;

  bool passed() const;  // no comparison failed
};

// Lines for a terminal, without notes and warnings.
std::string to_text(const Outcome& outcome);
// As --json prints it: what is infinite or NaN is null.
std::string to_json(const Outcome& outcome);

}  // namespace kiln::run
