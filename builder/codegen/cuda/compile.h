// From CUDA C++ to machine code, through NVRTC; no GPU is needed.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::codegen {

struct Cubin {
  SharedBytes bytes;
  // The most that any of its entries takes, by thread and by block.
  uint32_t registers = 0;
  uint32_t local_bytes = 0;  // of the stack, spilled registers included
  uint32_t spilled_bytes = 0;
  uint32_t shared_bytes = 0;
};

// Text to be compiled behind device_prelude(). `arch` is a GPU's own, "sm_90a". kUnsupported if
// there is no NVRTC or the code would be no good, kInternal with the compiler's log if it refuses
// the text. Thread-safe.
Result<Cubin> compile_cuda(std::string_view text, std::string_view arch);
// Any other text; nothing comes before it.
Result<Cubin> compile_plain_cuda(const std::string& text, std::string_view arch);

// "NVRTC 13.0": part of every key under which compiled code is kept.
Result<std::string> compiler_version();

// Compiles each text once; a text that failed fails again. Thread-safe.
class CubinCache {
 public:
  explicit CubinCache(std::string arch) : arch_(std::move(arch)) {}
  Result<Cubin> compile(std::string_view text);
  // From now on compile() only notes new texts and gives a cubin without code, until
  // compile_noted() compiles them at once.
  void note();
  void compile_noted(int threads);
  // All of them, on `threads` threads; results in the order of the texts.
  std::vector<Result<Cubin>> compile_all(std::span<const std::string> texts, int threads);

 private:
  struct Slot;
  std::string arch_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Slot>, std::less<>> slots_;
  bool noting_ = false;
  std::vector<std::string> noted_;
};

}  // namespace kiln::codegen
