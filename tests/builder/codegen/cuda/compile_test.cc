// Generated text compiles for the GPU on machines without one.
#include "builder/codegen/cuda/compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/cuda/kernel_cases.h"

namespace kiln::codegen {
namespace {

constexpr char kArch[] = "sm_90a";

class CompileCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto version = compiler_version(); !version.ok())
      GTEST_SKIP() << version.error().message;
  }
};

int threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

// All schedules of a few kernels, and of the others the best guess and the one that takes any
// kernel: time is spent where texts differ.
TEST_F(CompileCuda, EveryKindOfKernel) {
  const std::set<std::string> whole = {"layer norm bf16", "softmax of rows", "pointwise f16",
                                       "sum of columns"};
  std::vector<std::string> names, texts;
  for (const KernelCase& c : kernel_cases()) {
    const auto kernel = lower_to_loop(c.body.graph);
    ASSERT_TRUE(kernel.ok()) << c.name;
    std::vector<CudaSchedule> schedules = all_schedules(*kernel);
    if (!whole.contains(c.name)) schedules = {schedules.front(), schedules.back()};
    for (const CudaSchedule& schedule : schedules) {
      const auto source = emit_cuda(*kernel, schedule);
      ASSERT_TRUE(source.ok()) << source.error().message;
      if (source->launches.empty()) continue;
      names.push_back(c.name + " with " + to_text(schedule));
      texts.push_back(source->text);
    }
  }
  CubinCache cache(kArch);
  const auto cubins = cache.compile_all(texts, threads());
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_TRUE(cubins[i].ok()) << names[i] << ": " << cubins[i].error().message << texts[i];
    EXPECT_GT(cubins[i]->bytes.size(), 0u);
    EXPECT_GT(cubins[i]->registers, 0u) << names[i];
    // One register: of 1,024 threads none has more than 64.
    EXPECT_LE(cubins[i]->spilled_bytes, 4u) << names[i] << "\n" << texts[i];
  }
}

TEST_F(CompileCuda, WhatDoesNotCompileIsAnErrorWithTheLog) {
  const auto cubin = compile_cuda("KILN_KERNEL(32) broken() { nonsense; }", kArch);
  ASSERT_FALSE(cubin.ok());
  EXPECT_NE(cubin.error().message.find("nonsense"), std::string::npos) << cubin.error().message;
  EXPECT_FALSE(compile_cuda("", "sm_1").ok());
}

TEST_F(CompileCuda, CacheCompilesEachTextOnce) {
  CubinCache cache(kArch);
  const std::string text = "KILN_KERNEL(32) nothing() {}";
  const auto first = cache.compile(text), second = cache.compile(text);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->bytes.data(), second->bytes.data());
}

TEST_F(CompileCuda, CacheCompilesLaterWhatItNotes) {
  CubinCache cache(kArch);
  const std::string known = "KILN_KERNEL(32) known() {}", good = "KILN_KERNEL(32) good() {}",
                    bad = "KILN_KERNEL(32) bad() { nonsense; }";
  ASSERT_TRUE(cache.compile(known).ok());
  cache.note();
  EXPECT_GT(cache.compile(known)->bytes.size(), 0u);
  for (const std::string& text : {good, bad}) {
    const auto noted = cache.compile(text);
    ASSERT_TRUE(noted.ok());
    EXPECT_EQ(noted->bytes.size(), 0u);
  }
  cache.compile_noted(2);
  EXPECT_GT(cache.compile(good)->bytes.size(), 0u);
  EXPECT_FALSE(cache.compile(bad).ok());
}

TEST_F(CompileCuda, ThreadsCompileEachTextOnce) {
  CubinCache cache(kArch);
  const std::string a = "KILN_KERNEL(32) a() {}", b = "KILN_KERNEL(32) b() {}";
  const auto cubins = cache.compile_all(std::vector<std::string>{a, b, a, a, b, a, b, b}, 8);
  for (size_t i : {2, 3, 5}) EXPECT_EQ(cubins[i]->bytes.data(), cubins[0]->bytes.data());
  for (size_t i : {4, 6, 7}) EXPECT_EQ(cubins[i]->bytes.data(), cubins[1]->bytes.data());
  EXPECT_NE(cubins[0]->bytes.data(), cubins[1]->bytes.data());
}

}  // namespace
}  // namespace kiln::codegen
