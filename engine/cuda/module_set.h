// ModuleSet: the cubins of one engine, each loaded once.
#pragma once
#include <map>
#include <string>

#include "engine/cuda/owned.h"
#include "formats/engine_file/plan.h"

namespace kiln::cuda {

// Filled while an engine loads, by one thread; constant afterwards.
class ModuleSet {
 public:
  explicit ModuleSet(std::shared_ptr<const Device> device) : device_(std::move(device)) {}

  // The function `entry` of the cubin in blob `number`, allowed that much dynamic shared memory; if
  // it is any, as much of a multiprocessor's first cache as can be serves as such.
  // kDevice: the driver refuses the cubin; kCorruptData: it has no such function.
  Result<CUfunction> function(const plan::Plan& plan, uint32_t number, const std::string& entry,
                              uint32_t shared_bytes);

 private:
  Result<CUmodule> module(const plan::Plan& plan, uint32_t number);

  std::shared_ptr<const Device> device_;
  std::map<uint32_t, Module> modules_;
  std::map<CUfunction, uint32_t> shared_bytes_;  // the most that was allowed
};

}  // namespace kiln::cuda
