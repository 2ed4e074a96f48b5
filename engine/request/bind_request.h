// A request checked against the engine: which point, whose addresses.
#pragma once
#include <span>
#include <vector>

#include "engine/load/loaded_engine.h"
#include "engine/request/choose_point.h"

namespace kiln {

struct Request {
  Choice choice;
  std::vector<const void*> inputs;  // the caller's, in the plan's order
  std::vector<void*> outputs;
  std::vector<MemoryKind> input_memory, output_memory;
};

// kInvalidArgument: count, name, type, alignment or overlap is wrong, with found and expected.
// kUnsupported: device memory on the host target.
Result<Request> bind_request(const LoadedEngine& engine, std::span<const Tensor> inputs,
                             std::span<const Tensor> outputs);

}  // namespace kiln
