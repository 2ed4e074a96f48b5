#include "engine/cuda/module_set.h"

#include <array>
#include <cstring>

namespace kiln::cuda {
namespace {

// Without opting in a kernel has this much.
constexpr uint32_t kDefaultSharedBytes = 48 * 1024;

// The driver takes a pointer without a length and reads what the ELF header says.
Result<> check_elf(const SharedBytes& cubin) {
  constexpr std::array<unsigned char, 5> kElf64 = {0x7f, 'E', 'L', 'F', 2};
  constexpr size_t kHeaderBytes = 64;
  uint64_t sections = 0;
  uint16_t entry_bytes = 0, entries = 0;
  if (cubin.size() < kHeaderBytes || std::memcmp(cubin.data(), kElf64.data(), 5) != 0) {
    return Error{ErrorCode::kCorruptData, "the kernel's module is no cubin"};
  }
  std::memcpy(&sections, cubin.data() + 40, sizeof sections);
  std::memcpy(&entry_bytes, cubin.data() + 58, sizeof entry_bytes);
  std::memcpy(&entries, cubin.data() + 60, sizeof entries);
  const uint64_t table = uint64_t{entry_bytes} * entries;
  if (sections <= cubin.size() && table <= cubin.size() - sections) return Ok();
  return Error{ErrorCode::kCorruptData, "the kernel's cubin is cut off"};
}

}  // namespace

Result<CUmodule> ModuleSet::module(const plan::Plan& plan, uint32_t number) {
  if (const auto known = modules_.find(number); known != modules_.end()) return known->second.get();
  KILN_RETURN_IF_ERROR(check_elf(plan.blobs[number]));
  CUmodule module = nullptr;
  KILN_RETURN_IF_ERROR(device_->check(
      device_->driver().module_load_data(&module, plan.blobs[number].data()), "cuModuleLoadData"));
  modules_.emplace(number, Module(device_, module));
  return module;
}

Result<CUfunction> ModuleSet::function(const plan::Plan& plan, uint32_t number,
                                       const std::string& entry, uint32_t shared_bytes) {
  const CurrentDevice current(*device_);
  const DriverApi& driver = device_->driver();
  KILN_ASSIGN_OR_RETURN(CUmodule module, this->module(plan, number));
  CUfunction function = nullptr;
  const CUresult found = driver.module_get_function(&function, module, entry.c_str());
  if (found == CUDA_ERROR_NOT_FOUND) {
    return Error{ErrorCode::kCorruptData, "the kernel's cubin has no function '" + entry + "'"};
  }
  KILN_RETURN_IF_ERROR(device_->check(found, "cuModuleGetFunction"));
  if (shared_bytes > 0) {
    // How many of its blocks a multiprocessor is to hold may hang on that, and the driver's own
    // choice need not be the largest. A preference: the kernel runs without it, too.
    (void)driver.func_set_attribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                    CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
  }
  uint32_t& allowed = shared_bytes_.try_emplace(function, kDefaultSharedBytes).first->second;
  if (shared_bytes <= allowed) return function;
  const CUresult set = driver.func_set_attribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_bytes));
  KILN_RETURN_IF_ERROR(device_->check(
      set, "allowing the kernel " + std::to_string(shared_bytes) + " bytes of shared memory"));
  allowed = shared_bytes;
  return function;
}

}  // namespace kiln::cuda
