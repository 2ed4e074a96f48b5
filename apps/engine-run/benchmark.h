// Running one request over and over, and what that took.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/engine-run/named_array.h"
#include "engine/engine.h"

namespace kiln::run {

struct BenchmarkOptions {
  double warmup_ms = 200;
  double duration_s = 3;
  int64_t iterations = 10;  // at least so many queries, even when `duration_s` is over
  int threads = 1;          // callers, each asking again as soon as it has its answer
  // Where the request's tensors are: on target cuda kHost is page-locked.
  MemoryKind memory = MemoryKind::kHost;
};

// In the order in which queries began. A series is empty where the target has no such thing: the
// host target has latencies alone.
struct Measurements {
  std::vector<double> latency_ms;  // one infer() call, from call to return
  // Of requests measured after the queries, one at a time: by the GPU's clock its steps and the
  // copies of tensors to and from the context's memory; by the host's what putting all of that into
  // the stream takes.
  std::vector<double> device_ms, copy_in_ms, copy_out_ms, enqueue_ms;
  double wall_s = 0;  // from the first query's begin to the last one's end
  int64_t warmup_queries = 0;
};

// Called by one of the callers between its warm-up and its first query, and after its last one.
struct Watch {
  std::function<void()> begin = [] {}, end = [] {};
};

// The load of the machine by others, and other things known before the first query that make the
// figures doubtful; one line each.
std::vector<std::string> machine_warnings(int threads);

// Calls engine.infer(inputs) on `threads` threads, each with its own outputs of the types given and
// its own copy of the inputs, which are in host memory.
// The error of the first call that fails.
Result<Measurements> benchmark(const Engine& engine, std::span<const Tensor> inputs,
                               std::span<const TensorInfo> outputs, const BenchmarkOptions& options,
                               const Watch& watch = {});

}  // namespace kiln::run
