// Engine files whose checksums are right and whose content is not.
#pragma once
#include <functional>
#include <random>
#include <vector>

#include "tests/engine/runtime_fixture.h"
#include "tests/formats/engine_file/reseal.h"

namespace kiln::testing {

// Runs every point with its own types, whatever they have become. Sizes that a caller would not
// allocate are left out.
inline void run_all_points(const Engine& engine) {
  constexpr int64_t kMost = 1 << 16;
  for (const ShapePointInfo& point : engine.info().points) {
    std::vector<std::vector<double>> memory;
    const auto tensors = [&](const std::vector<TensorInfo>& infos) {
      std::vector<Tensor> result;
      for (const TensorInfo& info : infos) {
        if (info.type.bytes() > kMost) return std::vector<Tensor>();
        memory.emplace_back(static_cast<size_t>(info.type.bytes()) / sizeof(double) + 1);
        result.push_back({info.name, info.type, memory.back().data()});
      }
      return result;
    };
    const auto inputs = tensors(point.inputs), outputs = tensors(point.outputs);
    kernel_budget = 1'000;
    (void)engine.infer(inputs, outputs);
  }
}

// Loads and runs `rounds` copies of the plan's file, each with a few bits flipped under right
// checksums; half of the flips hit the plan section. `before` is called ahead of each. Returns how
// many could be loaded. That none crashes is the test.
inline int load_and_run_damaged(
    const plan::Plan& plan, LoadOptions options, int rounds, uint64_t seed,
    const std::function<void()>& before = [] {}) {
  options.allow_unverified = true;
  const auto file = *to_bytes(plan);
  const auto plan_bytes = (*engine_file::find_sections(file, true))[0];
  const auto start = static_cast<size_t>(plan_bytes.data() - file.data());
  std::mt19937_64 random(seed);
  int loaded = 0;
  for (int round = 0; round < rounds; ++round) {
    auto damaged = file;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const bool in_plan = random() % 2 == 0;
      const size_t from = in_plan ? start : engine_file::kHeaderBytes;
      const size_t bits = (in_plan ? plan_bytes.size() : file.size() - from) * 8;
      const size_t bit = random() % bits;
      damaged[from + bit / 8] ^= std::byte(1 << bit % 8);
    }
    reseal(damaged);
    before();
    const auto engine = Engine::load_bytes(SharedBytes::take(std::move(damaged)), options);
    if (engine) {
      ++loaded;
      run_all_points(*engine);
    } else {
      EXPECT_EQ(engine.error().message.rfind("engine 'in memory': ", 0), 0u)
          << engine.error().message;
    }
  }
  return loaded;
}

}  // namespace kiln::testing
