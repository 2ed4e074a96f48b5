// Context: the memory of one running request. Each target has its own.
#pragma once
#include <memory>
#include <span>

#include "engine/engine.h"
#include "formats/result.h"

namespace kiln {

struct LoadedEngine;

// Not thread-safe; serves one request at a time of the engine it was made for.
class Context {
 public:
  virtual ~Context() = default;
  // REQUIRES: `engine` is the one that made this context.
  virtual Result<> run(const LoadedEngine& engine, std::span<const Tensor> inputs,
                       std::span<const Tensor> outputs, Stream stream) = 0;
  // Microseconds on the device of one run of a point's steps, over `runs` of them back to back, on
  // whatever tensors the latest request left. kUnsupported on the host.
  virtual Result<double> time_on_device(size_t point, int runs) = 0;
  virtual Result<RequestTimes> time_request(const LoadedEngine& engine,
                                            std::span<const Tensor> inputs,
                                            std::span<const Tensor> outputs) = 0;
  // As ExecutionContext says.
  virtual Result<double> time_with_cold_weights(size_t point, int copies, int runs) = 0;
  virtual Result<> run_checked(const LoadedEngine& engine, std::span<const Tensor> inputs,
                               std::span<const Tensor> outputs) = 0;
};

// What a target adds to a loaded engine. Immutable, shared by threads.
class TargetEngine {
 public:
  virtual ~TargetEngine() = default;
  virtual Result<std::unique_ptr<Context>> create_context(const LoadedEngine& engine) const = 0;
  // Bytes of one context, and of what all contexts share, in the target's memory.
  virtual uint64_t context_bytes() const = 0;
  virtual uint64_t shared_bytes() const = 0;
  // As in EngineInfo and Engine. `bytes` is not 0.
  virtual std::string device_address() const = 0;
  virtual Result<std::shared_ptr<std::byte>> allocate(MemoryKind memory, uint64_t bytes) const = 0;
  virtual Result<> copy(void* to, const void* from, uint64_t bytes) const = 0;
};

}  // namespace kiln
