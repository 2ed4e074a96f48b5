// DeviceClock: how long a candidate takes on a GPU.
#pragma once
#include <cstdint>

#include "engine/engine.h"
#include "formats/result.h"

namespace kiln {

struct Spread {
  double median = 0, spread = 0;  // spread: half the distance between the quartiles
};

// How often a graph has a candidate, so that weights of its own for each are cold (both in bytes),
// the launch of the graph is hidden, and one may begin while the one before it ends.
int runs_in_a_graph(uint64_t weights_bytes, uint64_t cache_bytes);
// At most `most`, fewer where a run takes so many microseconds that the graph would take long.
int runs_in_a_short_graph(int most, double us);

// Times a candidate on the device as a part of a model that runs again and again: in a graph with
// others, its activations still in the cache, its weights not, as the rest of the model has passed
// through since. Each run of the graph therefore has the candidate several times, with weights of
// its own.
class DeviceClock {
 public:
  DeviceClock(ExecutionContext& context, uint64_t weights_bytes, uint64_t cache_bytes)
      : context_(context), copies_(runs_in_a_graph(weights_bytes, cache_bytes)) {}

  // Roughly how long one run takes, in microseconds: a graph of few runs, once. Those of a slow
  // candidate, or of one that launches many kernels, would take long to make and to run; where this
  // says so, the other functions' graphs have fewer runs. Must be called before them.
  Result<double> glance();
  // Microseconds of one run of the candidate, the mean of `runs` runs of the graph.
  Result<double> time(int runs);
  // The same, of runs that take that long together.
  Result<double> time_for(double total_us, double estimate_us);
  // Runs of about 2 ms together; the median of 7 such.
  Result<Spread> measure(double estimate_us);

 private:
  ExecutionContext& context_;
  int copies_ = 1;
  bool between_host_steps_ = false;
};

}  // namespace kiln
