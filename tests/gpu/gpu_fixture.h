// What tests on a GPU start from: the GPU itself, engines built for it, a reason to skip without.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "builder/build_options.h"
#include "engine/cuda/device.h"
#include "tests/engine/cuda/runtime_checks.h"

namespace kiln::testing {

struct EngineRecipe {
  std::string name;
  std::filesystem::path model;
  Precision precision = Precision::kFp32;
  int64_t max_batch = 0;
  std::vector<int64_t> batches = {};  // instead of max_batch

  int64_t most_rows() const { return batches.empty() ? max_batch : batches.back(); }
};

// Small models of this repository: convolutions and attention, of cuDNN, cuBLASLt and our own.
const std::vector<EngineRecipe>& small_engines();
const EngineRecipe& small_engine(const std::string& name);
// Every .onnx in extra_models_folder(), in f16 at batches 1 and 8; none where it is not set.
std::vector<EngineRecipe> extra_engines();

// The engine's file, built on first use and kept until the program ends. Builds several at once.
Result<std::filesystem::path> build_engine(const EngineRecipe& recipe);
void build_engines(const std::vector<EngineRecipe>& recipes);

// Why there is no GPU here; empty where there is one.
std::string no_gpu();

// Skipped with the reason where there is no GPU. Holds the GPU's context, so that what tests
// measure is beyond it.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override;

  // Fails the test if the engine cannot be built.
  static Subject subject_of(const EngineRecipe& recipe);

  std::shared_ptr<const cuda::Device> device_;
};

}  // namespace kiln::testing
