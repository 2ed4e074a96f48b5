// Steps of control flow say how many steps belong to them: lowering to the device, which leaves
// nothing of a kernel without points, must keep that true. Kernels are compiled, not run.
#include "builder/tactics/cuda/lower_device.h"

#include <gtest/gtest.h>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/ir/text.h"
#include "builder/tactics/lower_grouped.h"
#include "tests/engine/cuda/fake_cublaslt.h"

namespace kiln {
namespace {

constexpr LocalBuffer kCondition{LocalBuffer::Kind::kInput, 0};

class LowerDevice : public ::testing::Test {
 protected:
  LowerDevice() {
    tools_.device = fake_.device();
    tools_.compiler = std::make_shared<KernelCompiler>(90);
    info_.multiprocessors = 132;
  }

  // A pointwise kernel over that many points, of the region's temporaries.
  static LocalStep loop(int64_t points) {
    const std::string type = "f32[" + std::to_string(points) + "]";
    return loop_of("graph {\n  input %0 : " + type + " \"x\"\n  %1 = exp(%0) : " + type +
                   " ; \"exp\"\n  output %1 \"y\"\n}\n");
  }
  static LocalStep loop_of(const std::string& text) {
    const auto graph = ir::parse_text(text);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
    auto lowered = lower_loop_region(*graph);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().message);
    return lowered->steps.at(0);
  }
  static LocalStep branch(uint32_t then_steps, uint32_t else_steps) {
    return LocalBranch{kCondition, then_steps, else_steps};
  }
  static LocalStep repeat(uint32_t steps) { return LocalRepeat{{}, kCondition, {}, steps}; }

  // The lowered steps as a word each: "launch", "library", "host", "branch 1 2", "repeat 3".
  std::vector<std::string> lower(std::vector<LocalStep> steps) {
    Lowered lowered;
    lowered.steps = std::move(steps);
    lowered.may_use_host = true;
    const ir::Region region;
    const TensorType matrix{DType::kF32, {8, 8}};
    TacticQuery query{region, {matrix, matrix}, {matrix}, {}, info_, {}, &tools_};
    const auto done = lower_device(query, lowered);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    std::vector<std::string> words;
    for (const LocalStep& step : lowered.steps) words.push_back(word_of(step));
    return words;
  }

  static std::string word_of(const LocalStep& step) {
    if (std::holds_alternative<LocalLaunch>(step)) return "launch";
    if (std::holds_alternative<LibraryCall>(step)) return "library";
    if (std::holds_alternative<LocalCopy>(step)) return "copy";
    if (const auto* branch = std::get_if<LocalBranch>(&step)) {
      return "branch " + std::to_string(branch->then_steps) + " " +
             std::to_string(branch->else_steps);
    }
    if (const auto* repeat = std::get_if<LocalRepeat>(&step)) {
      return "repeat " + std::to_string(repeat->body_steps);
    }
    return "host";
  }

  using Words = std::vector<std::string>;
  testing::FakeCublasLt fake_;
  CudaTools tools_;
  DeviceInfo info_;
};

TEST_F(LowerDevice, KernelsBecomeLaunchesAndKernelsWithoutPointsNothing) {
  EXPECT_EQ(lower({loop(8), loop(0), loop(3)}), (Words{"launch", "launch"}));
  EXPECT_EQ(lower({loop(0)}), Words{});
}

TEST_F(LowerDevice, WhatTheDeviceHasNoFormForStaysAHostCall) {
  const LocalBuffer a{LocalBuffer::Kind::kInput, 0}, b{LocalBuffer::Kind::kInput, 1};
  const LocalBuffer y{LocalBuffer::Kind::kOutput, 0};
  Operation product{"matmul", {}};
  product.set("transpose_a", int64_t{0}).set("transpose_b", int64_t{0});
  const HostCall matmul{product, {a, b}, {y}}, other{{"nonzero", {}}, {a}, {y}};
  EXPECT_EQ(lower({matmul, other, LocalCopy{a, y}}), (Words{"library", "host", "copy"}));
}

TEST_F(LowerDevice, ABranchBehindAKernelWithoutPointsKeepsItsOwnSteps) {
  EXPECT_EQ(lower({loop(0), branch(1, 1), loop(8), loop(8)}),
            (Words{"branch 1 1", "launch", "launch"}));
  EXPECT_EQ(lower({loop(0), loop(0), repeat(1), loop(8), loop(8)}),
            (Words{"repeat 1", "launch", "launch"}));
}

TEST_F(LowerDevice, KernelsWithoutPointsInABranchLeaveIt) {
  EXPECT_EQ(lower({branch(2, 1), loop(0), loop(8), loop(8)}),
            (Words{"branch 1 1", "launch", "launch"}));
  EXPECT_EQ(lower({branch(1, 2), loop(8), loop(8), loop(0), loop(8)}),
            (Words{"branch 1 1", "launch", "launch", "launch"}));
  EXPECT_EQ(lower({branch(1, 1), loop(0), loop(0)}), (Words{"branch 0 0"}));
}

TEST_F(LowerDevice, NestedControlFlowIsCountedWithWhatHoldsIt) {
  EXPECT_EQ(lower({repeat(4), loop(8), loop(0), branch(1, 0), loop(8), loop(8)}),
            (Words{"repeat 3", "launch", "branch 1 0", "launch", "launch"}));
  EXPECT_EQ(lower({repeat(3), loop(0), branch(0, 1), loop(0)}), (Words{"repeat 1", "branch 0 0"}));
}

}  // namespace
}  // namespace kiln
