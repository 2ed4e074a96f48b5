#include "builder/codegen/cuda/compile.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <optional>
#include <thread>

#include "builder/codegen/cuda/nvrtc_api.h"
#include "builder/codegen/cuda/prelude.h"

namespace kiln::codegen {
namespace {

// The assembler's warning about asynchronous products, which would be several times slower.
constexpr std::string_view kSerialised = "wgmma.mma_async instructions are serialized";

// The largest number that stands before `unit` in the assembler's report, "Used 24 registers".
uint32_t largest_before(std::string_view log, std::string_view unit) {
  uint32_t largest = 0;
  for (size_t at = log.find(unit); at != std::string_view::npos; at = log.find(unit, at + 1)) {
    const size_t space = log.rfind(' ', at - 1);
    uint32_t value = 0;
    std::from_chars(log.data() + space + 1, log.data() + at, value);
    largest = std::max(largest, value);
  }
  return largest;
}

class Program {
 public:
  explicit Program(const NvrtcApi& api) : api_(api) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) api_.destroy(&program_);
  }

  Result<Cubin> compile(const std::string& text, std::string_view arch) {
    KILN_RETURN_IF_ERROR(
        check(api_.create(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr)));
    const std::string architecture = "--gpu-architecture=" + std::string(arch);
    // Products and sums are rounded one by one, as everywhere else.
    const std::array options = {architecture.c_str(), "--std=c++17", "--fmad=false",
                                "--minimal",          "-w",          "--ptxas-options=-v"};
    const int status = api_.compile(program_, static_cast<int>(options.size()), options.data());
    const std::string log = read_log();
    if (status != 0) return Error{ErrorCode::kInternal, "device code does not compile: " + log};
    if (log.find(kSerialised) != std::string::npos) {
      return Error{ErrorCode::kUnsupported,
                   "the assembler lets the tensor cores' products wait for each other: " + log};
    }
    Cubin cubin;
    cubin.registers = largest_before(log, " registers");
    cubin.local_bytes = largest_before(log, " bytes stack frame");
    cubin.spilled_bytes = largest_before(log, " bytes spill stores");
    cubin.shared_bytes = largest_before(log, " bytes smem");
    size_t size = 0;
    KILN_RETURN_IF_ERROR(check(api_.cubin_size(program_, &size)));
    std::vector<std::byte> bytes(size);
    KILN_RETURN_IF_ERROR(check(api_.cubin(program_, reinterpret_cast<char*>(bytes.data()))));
    cubin.bytes = SharedBytes::take(std::move(bytes));
    return cubin;
  }

 private:
  Result<> check(int status) const {
    if (status == 0) return Ok();
    return Error{ErrorCode::kInternal, std::string("NVRTC: ") + api_.error_text(status)};
  }

  std::string read_log() const {
    size_t size = 0;
    if (api_.log_size(program_, &size) != 0 || size == 0) return "";
    std::string log(size, '\0');
    if (api_.log(program_, log.data()) != 0) return "";
    log.resize(size - 1);
    return log;
  }

  const NvrtcApi& api_;
  NvrtcProgram program_ = nullptr;
};

}  // namespace

Result<Cubin> compile_plain_cuda(const std::string& text, std::string_view arch) {
  KILN_ASSIGN_OR_RETURN(const NvrtcApi* const api, nvrtc());
  return Program(*api).compile(text, arch);
}

Result<Cubin> compile_cuda(std::string_view text, std::string_view arch) {
  return compile_plain_cuda(device_prelude() + std::string(text), arch);
}

Result<std::string> compiler_version() {
  KILN_ASSIGN_OR_RETURN(const NvrtcApi* const api, nvrtc());
  int major = 0, minor = 0;
  if (const int status = api->version(&major, &minor); status != 0) {
    return Error{ErrorCode::kInternal, std::string("NVRTC: ") + api->error_text(status)};
  }
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

struct CubinCache::Slot {
  std::once_flag once;
  std::optional<Result<Cubin>> result;
};

Result<Cubin> CubinCache::compile(std::string_view text) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    auto found = slots_.find(text);
    if (found == slots_.end() && noting_) {
      noted_.emplace_back(text);
      return Cubin();
    }
    if (found == slots_.end()) {
      found = slots_.emplace(std::string(text), std::make_shared<Slot>()).first;
    }
    slot = found->second;
  }
  std::call_once(slot->once, [&] { slot->result = compile_cuda(text, arch_); });
  return *slot->result;
}

void CubinCache::note() {
  const std::lock_guard lock(mutex_);
  noting_ = true;
}

void CubinCache::compile_noted(int threads) {
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(mutex_);
    noting_ = false;
    texts.swap(noted_);
  }
  compile_all(texts, threads);
}

std::vector<Result<Cubin>> CubinCache::compile_all(std::span<const std::string> texts,
                                                   int threads) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t at = next++; at < texts.size(); at = next++) static_cast<void>(compile(texts[at]));
  };
  std::vector<std::jthread> workers;
  const int extra = std::min<int>(threads, static_cast<int>(texts.size())) - 1;
  for (int i = 0; i < extra; ++i) workers.emplace_back(work);
  work();
  workers.clear();
  std::vector<Result<Cubin>> results;
  for (const std::string& text : texts) results.push_back(compile(text));
  return results;
}

}  // namespace kiln::codegen
