// Engine: a loaded .engine file, ready to run.
//
//   auto engine = kiln::Engine::load("m.engine", {.host_kernels = kiln::host_kernels()});
//   if (!engine) { std::cerr << engine.error().message; return 1; }
//   engine->infer(inputs, outputs);
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/host_kernels.h"
#include "engine/tensor.h"
#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln {

namespace plan {
struct Plan;
}
namespace cuda {
class Libraries;
}

struct LoadOptions {
  // Contexts made at load for infer(); each owns an arena for the largest shape point.
  int contexts = 1;
  // Needed by engines built for the host target and by host operations of others.
  HostKernels host_kernels = {};
  // Plugin libraries, by explicit path; only those are loaded.
  std::vector<std::filesystem::path> plugins = {};
  // An engine whose build did not verify it is refused unless this is set.
  bool allow_unverified = false;
  // Checksums of every section are checked at load; the weights' cost a read of the whole file.
  bool check_weights = true;
  // The GPU that an engine of target cuda runs on: its number, as the CUDA runtime counts.
  int device = 0;
  // The CUDA driver and libraries to use in place of the system's. For tests.
  std::shared_ptr<const cuda::Libraries> cuda_libraries = {};
  // On target cuda, kernels that wait for the steps before them by themselves are launched while
  // those still run. Results are the same without.
  bool programmatic_launch = true;
};

struct TensorInfo {
  std::string name;
  TensorType type;      // at one shape point
  int batch_axis = -1;  // -1: does not grow with the batch
};

struct ShapePointInfo {
  std::string name;
  int64_t batch = 0;  // 0: no batch dimension
  std::vector<TensorInfo> inputs, outputs;
  uint64_t arena_bytes = 0, arena_lower_bound_bytes = 0;
  size_t steps = 0;
};

struct EngineInfo {
  std::string kiln_version, target, device, precision, model_name;
  bool verified = false;
  bool batch_padding = false;        // requests between buckets are padded
  std::string batch_padding_reason;  // why not, when false
  std::vector<ShapePointInfo> points;
  uint64_t weights_bytes = 0;
  uint64_t context_bytes = 0;  // memory of one context, on the engine's target
  uint64_t shared_bytes = 0;   // device memory that all contexts share: weights
  // PCI address of the GPU that the engine is loaded on, "0000:1b:00.0"; "" on target host.
  std::string device_address;
  std::string report_json;  // the build's report
};

// What one request takes, in microseconds: the first three by the GPU's clock, by events around
// them in the stream; `enqueue_us` by the host's, from before the first call of the driver to
// behind the last one. Where that is more than the others together, the GPU waits for the host.
struct RequestTimes {
  double copy_in_us = 0;  // the caller's inputs to where the steps read them
  double compute_us = 0;  // the steps
  double copy_out_us = 0;
  double enqueue_us =
      0;  // with steps on the host and copies of pageable memory, which it waits for
};

// One caller's mutable state: the arena. Not thread-safe; make one for each thread or stream.
class ExecutionContext {
 public:
  ExecutionContext(ExecutionContext&&) noexcept;
  ExecutionContext& operator=(ExecutionContext&&) noexcept;
  ~ExecutionContext();

  // Runs the model. With a stream, on target cuda, the work is put into the stream and the outputs
  // are ready when the stream gets there; tensors in pageable host memory and steps that run on the
  // host make the call wait. Otherwise it returns when the outputs are written.
  // Tensors are matched by name, or by position where names are empty. An output's data may be
  // larger than needed, its type is checked. Errors leave the outputs undefined and the context
  // usable, but for failures of the device (kDevice), after which it is lost.
  Result<> enqueue(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                   Stream stream = {});

  // Microseconds that the device takes for shape point number `point` of info().points, copies of
  // tensors in and out apart: the mean of `runs` runs back to back, on what the latest request of
  // that point that came in host memory left in the context. kUnsupported on target host.
  Result<double> time_on_device(size_t point, int runs);

  // Runs the model as enqueue() without a stream does, and tells what that took. Three events more
  // are in the stream, a microsecond or so. kUnsupported on target host.
  Result<RequestTimes> time_request(std::span<const Tensor> inputs,
                                    std::span<const Tensor> outputs);

  // Like time_on_device(), with `copies` runs in one graph, each on its own copy of the weights
  // (one for all if it is over twice the device's cache): cold where all are larger than the cache.
  // The first call for a number makes copies and graph. kUnsupported where a step runs on the host.
  Result<double> time_with_cold_weights(size_t point, int copies, int runs);

  // For trials of kernels: like enqueue() without a stream, and kVerification if a step wrote
  // outside of its buffers. The context's memory is filled for that, which takes its time.
  Result<> run_checked(std::span<const Tensor> inputs, std::span<const Tensor> outputs);

 private:
  friend class Engine;
  struct State;
  explicit ExecutionContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Immutable, cheap to copy, thread-safe. Moved from, it has no info() and its other calls fail.
class Engine {
 public:
  // kIo: cannot be read. kCorruptData: not an engine, or damaged. kVersionMismatch: made for
  // another version, device or plugin, with both values. kUnsupported: needs host kernels or a
  // plugin that the options do not give. The file stays mapped: replace it by a rename alone.
  static Result<Engine> load(const std::filesystem::path& path, const LoadOptions& options = {});
  // The same from a file's bytes in memory, which the engine keeps; they are aligned to 8 bytes.
  static Result<Engine> load_bytes(SharedBytes file, const LoadOptions& options = {});

  const EngineInfo& info() const;

  // The output types for these inputs: which buckets exist decides, as for infer().
  Result<std::vector<TensorInfo>> output_types(std::span<const Tensor> inputs) const;

  // Number in info().points of the shape point that infer() would run for these inputs.
  Result<size_t> shape_point(std::span<const Tensor> inputs) const;

  Result<ExecutionContext> create_context() const;

  // Memory for tensors of a caller, uninitialised, aligned to 256 bytes, given back with the last
  // pointer to it: kDevice on the engine's GPU, kHost such that a GPU reads and writes it without
  // a copy by the driver (page-locked; slow to allocate). Target host has kHost alone.
  // kOutOfMemory, kUnsupported.
  Result<std::shared_ptr<std::byte>> allocate(MemoryKind memory, uint64_t bytes) const;
  // Copies between any memory of the host and of the engine's GPU, and waits for it.
  Result<> copy(void* to, const void* from, uint64_t bytes) const;

  // Takes one of the contexts made at load and waits for one when all are busy.
  Result<> infer(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const;

 private:
  struct State;
  explicit Engine(std::shared_ptr<const State> state);
  static Result<Engine> from_plan(plan::Plan plan, const std::string& name,
                                  const LoadOptions& options);
  std::shared_ptr<const State> state_;
};

}  // namespace kiln
