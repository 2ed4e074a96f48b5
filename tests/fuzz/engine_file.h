// What the fuzzers of engine files share: damage that stays within a section, and a run of what is
// accepted.
#pragma once
#include <random>
#include <vector>

#include "engine/engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/fake_kernels.h"
#include "tests/formats/engine_file/reseal.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace kiln::testing {

// Runs the first point, unless it is larger than a fuzzer should allocate.
inline void run_first_point(const Engine& engine) {
  constexpr int64_t kMostBytes = 1 << 16;
  std::vector<std::vector<double>> memory;
  std::vector<Tensor> tensors[2];
  const ShapePointInfo& point = engine.info().points.front();
  if (point.arena_bytes > 16 * kMostBytes) return;
  for (int side = 0; side < 2; ++side) {
    for (const TensorInfo& info : side == 0 ? point.inputs : point.outputs) {
      if (info.type.bytes() > kMostBytes) return;
      memory.emplace_back(static_cast<size_t>(info.type.bytes()) / sizeof(double) + 1);
      tensors[side].push_back({info.name, info.type, memory.back().data()});
    }
  }
  kernel_budget = 1'000;
  (void)engine.infer(tensors[0], tensors[1]);
}

// Loads any bytes, with checksums made right, so that the fuzzer gets past them to the plan. No
// bytes at all stand for the seed.
inline Result<Engine> load_resealed(const uint8_t* data, size_t size, const plan::Plan& seed,
                                    LoadOptions options) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(begin, begin + size);
  if (file.empty()) file = *to_bytes(seed);
  reseal(file);
  options.allow_unverified = true;
  return Engine::load_bytes(SharedBytes::take(std::move(file)), options);
}

// Damages one section of the file and keeps its length: a file whose layout is wrong goes nowhere,
// and is replaced by the seed's.
inline size_t mutate_section(uint8_t* data, size_t size, size_t max_size, unsigned int random_seed,
                             const plan::Plan& seed) {
  auto* begin = reinterpret_cast<std::byte*>(data);
  std::vector<std::byte> file(begin, begin + size);
  reseal(file);
  auto sections = engine_file::find_sections(file, false);
  if (!sections) {
    file = *to_bytes(seed);
    sections = engine_file::find_sections(file, false);
  }
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::minstd_rand random(random_seed);
  std::copy(file.begin(), file.end(), begin);
  const engine_file::Bytes section = (*sections)[random() % 4 == 0 ? 1 : 0];  // blobs, else plan
  if (section.empty()) return file.size();
  uint8_t* start = data + (section.data() - file.data());
  LLVMFuzzerMutate(start, section.size(), section.size());
  return file.size();
}

}  // namespace kiln::testing
