// Any bytes as an engine file. The checksums are made right first, so that the fuzzer gets past
// them to the plan; what is accepted is run. No input at all stands for a whole engine to start
// from.
#include "engine/engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/fake_kernels.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/formats/engine_file/reseal.h"

namespace {

using kiln::Tensor;

// Runs the first point, unless its tensors are larger than a fuzzer should allocate.
void run(const kiln::Engine& engine) {
  constexpr int64_t kMostBytes = 1 << 16;
  std::vector<std::vector<double>> memory;
  std::vector<Tensor> tensors[2];
  const kiln::ShapePointInfo& point = engine.info().points.front();
  for (int side = 0; side < 2; ++side) {
    for (const kiln::TensorInfo& info : side == 0 ? point.inputs : point.outputs) {
      if (info.type.bytes() > kMostBytes) return;
      memory.emplace_back(static_cast<size_t>(info.type.bytes()) / sizeof(double) + 1);
      tensors[side].push_back({info.name, info.type, memory.back().data()});
    }
  }
  kiln::testing::kernel_budget = 1'000;
  (void)engine.infer(tensors[0], tensors[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(begin, begin + size);
  if (file.empty()) file = *kiln::to_bytes(kiln::testing::affine_plan({1, 2}));
  kiln::testing::reseal(file);
  const auto engine = kiln::Engine::load_bytes(
      kiln::SharedBytes::take(std::move(file)),
      {.host_kernels = kiln::testing::fake_kernels(), .allow_unverified = true});
  if (engine) run(*engine);
  return 0;
}

// Bytes flipped at random seldom make a file whose length and layout are right: start from one.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int) {
  const auto seed = *kiln::to_bytes(kiln::testing::affine_plan({1, 2}));
  if (size < kiln::engine_file::kHeaderBytes && seed.size() <= max_size) {
    std::memcpy(data, seed.data(), seed.size());
    return seed.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
