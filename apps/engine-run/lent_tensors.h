// Tensors of a request in memory that the engine lends: what a benchmark runs on.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace kiln::run {

struct LentTensors {
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<std::byte>> blocks;  // by tensor
};

// Copies of `tensors`, which are in host memory.
Result<LentTensors> lend_copies(const Engine& engine, std::span<const Tensor> tensors,
                                MemoryKind memory);
// Room for tensors of these types.
Result<LentTensors> lend_room(const Engine& engine, std::span<const TensorInfo> types,
                              MemoryKind memory);

}  // namespace kiln::run
