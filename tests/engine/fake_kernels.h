// Host kernels for tests of the runtime: a table of their own, so that nothing of kiln_host is
// needed. They check their types as real kernels do.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "engine/host_kernels.h"
#include "formats/operation/operation.h"

namespace kiln::testing {

// Runs of "slow" kernels at the same time, and the most there ever were.
inline std::atomic<int> slow_running = 0, slow_most = 0;

// What a run of kernels may still do before it fails: holds loops of damaged engines.
inline thread_local int64_t kernel_budget = 1'000'000;

class FakeKernel : public HostKernel {
 public:
  FakeKernel(std::string name, float factor, std::vector<int64_t> counts)
      : name_(std::move(name)), factor_(factor), counts_(std::move(counts)) {}

  uint64_t workspace_bytes() const override { return name_ == "needs_workspace" ? 100 : 0; }
  bool in_place(size_t input) const override { return name_ == "scale" && input == 0; }

  Result<> run(std::span<const void* const> inputs, std::span<void* const> outputs,
               void* workspace) const override {
    if (--kernel_budget < 0) return Error{ErrorCode::kInternal, "the test's budget is spent"};
    if (name_ == "fail") return Error{ErrorCode::kInvalidArgument, "index is 7, expected 0 to 3"};
    if (name_ == "throw") throw std::bad_alloc();
    if (name_ == "slow") wait();
    if (name_ == "needs_workspace") static_cast<char*>(workspace)[99] = 1;
    const auto* x = static_cast<const float*>(inputs[0]);
    auto* y = static_cast<float*>(outputs[0]);
    for (int64_t i = 0; i < counts_[0]; ++i) {
      const float addend =
          name_ == "add_row" ? static_cast<const float*>(inputs[1])[i % counts_[1]] : 0.0f;
      y[i] = x[i] * factor_ + addend;
    }
    return Ok();
  }

 private:
  static void wait() {
    const int running = ++slow_running;
    int most = slow_most;
    while (running > most && !slow_most.compare_exchange_weak(most, running)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    --slow_running;
  }

  std::string name_;
  float factor_;
  std::vector<int64_t> counts_;
};

// "scale" {factor}: x -> factor x, in place. "add_row": x, row -> x + row. "slow", "fail",
// "throw" and "needs_workspace": x -> x.
inline Result<std::unique_ptr<HostKernel>> prepare_fake(const Operation& operation,
                                                        std::span<const HostInput> inputs,
                                                        std::span<const TensorType> outputs) {
  const auto refuse = [](const char* why) { return Error{ErrorCode::kInvalidArgument, why}; };
  const bool adds = operation.name == "add_row";
  constexpr std::string_view kNames[] = {"add_row", "scale", "slow",
                                         "fail",    "throw", "needs_workspace"};
  if (std::ranges::find(kNames, operation.name) == std::end(kNames)) {
    return Error{ErrorCode::kUnsupported, "no kernel has that name"};
  }
  if (inputs.size() != (adds ? 2u : 1u) || outputs.size() != 1) return refuse("wrong count");
  if (inputs[0].type != outputs[0]) return refuse("types differ");
  std::vector<int64_t> counts;
  for (const HostInput& input : inputs) {
    if (input.type.dtype != DType::kF32) return refuse("takes f32");
    counts.push_back(input.type.elements());
  }
  if (adds && counts[1] == 0) return refuse("an empty row");
  return std::unique_ptr<HostKernel>(std::make_unique<FakeKernel>(
      operation.name, static_cast<float>(operation.get_double("factor", 1.0)), counts));
}

inline HostKernels fake_kernels() { return {.prepare = &prepare_fake}; }

}  // namespace kiln::testing
