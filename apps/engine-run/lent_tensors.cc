#include "apps/engine-run/lent_tensors.h"

namespace kiln::run {
namespace {

Result<> add(const Engine& engine, Tensor tensor, LentTensors& lent) {
  KILN_ASSIGN_OR_RETURN(auto block,
                        engine.allocate(tensor.memory, static_cast<uint64_t>(tensor.type.bytes())));
  tensor.data = block.get();
  lent.tensors.push_back(std::move(tensor));
  lent.blocks.push_back(std::move(block));
  return Ok();
}

}  // namespace

Result<LentTensors> lend_copies(const Engine& engine, std::span<const Tensor> tensors,
                                MemoryKind memory) {
  LentTensors lent;
  for (const Tensor& tensor : tensors) {
    KILN_RETURN_IF_ERROR(add(engine, {tensor.name, tensor.type, nullptr, memory}, lent));
    KILN_RETURN_IF_ERROR(engine.copy(lent.tensors.back().data, tensor.data,
                                     static_cast<uint64_t>(tensor.type.bytes())));
  }
  return lent;
}

Result<LentTensors> lend_room(const Engine& engine, std::span<const TensorInfo> types,
                              MemoryKind memory) {
  LentTensors lent;
  for (const TensorInfo& info : types) {
    KILN_RETURN_IF_ERROR(add(engine, {info.name, info.type, nullptr, memory}, lent));
  }
  return lent;
}

}  // namespace kiln::run
