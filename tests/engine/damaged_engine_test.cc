// Engine files whose checksums are right and whose content is not: loading and running them gives
// an error or an answer, never a crash. Run under sanitizers this is the whole claim.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/runtime_fixture.h"
#include "tests/formats/engine_file/reseal.h"

namespace kiln {
namespace {

// Runs every point with its own types, whatever they have become. Sizes that a caller would not
// allocate are left out.
void run_all_points(const Engine& engine) {
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
    testing::kernel_budget = 1'000;
    (void)engine.infer(inputs, outputs);
  }
}

TEST(DamagedEngine, ResealedPlansRunOrFail) {
  const auto file = *to_bytes(testing::affine_plan({1, 4}));
  const auto plan_bytes = (*engine_file::find_sections(file, true))[0];
  const auto start = static_cast<size_t>(plan_bytes.data() - file.data());
  const testing::ScratchFolder folder;
  std::mt19937_64 random(4);
  int loaded = 0;
  for (int round = 0; round < 10'000; ++round) {
    auto damaged = file;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      // Half of them in the plan, the others anywhere behind the header.
      const bool in_plan = random() % 2 == 0;
      const size_t from = in_plan ? start : engine_file::kHeaderBytes;
      const size_t bits = (in_plan ? plan_bytes.size() : file.size() - from) * 8;
      const size_t bit = random() % bits;
      damaged[from + bit / 8] ^= std::byte(1 << bit % 8);
    }
    testing::reseal(damaged);
    std::filesystem::remove(folder / "m.engine");  // file systems flush what is rewritten
    testing::write_bytes(folder / "m.engine", damaged);
    const auto engine = Engine::load(
        folder / "m.engine", {.host_kernels = testing::fake_kernels(), .allow_unverified = true});
    if (engine) {
      ++loaded;
      run_all_points(*engine);
    } else {
      EXPECT_NE(engine.error().message.find("engine '" + folder.path().string()), std::string::npos)
          << engine.error().message;
    }
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace kiln
