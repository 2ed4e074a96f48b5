// Context: the memory of one running request.
#pragma once
#include "engine/context/memory.h"
#include "engine/load/loaded_engine.h"

namespace kiln {

// Not thread-safe; serves one request at a time of the engine it was made for.
class Context {
 public:
  static Result<Context> create(const LoadedEngine& engine);

  // REQUIRES: `engine` is the one given to create().
  Result<> run(const LoadedEngine& engine, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs, Stream stream);

 private:
  Memory memory_;
  CallAddresses addresses_;
};

}  // namespace kiln
