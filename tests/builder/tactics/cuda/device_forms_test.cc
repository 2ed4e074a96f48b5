// What regions become on a GPU that is elsewhere: kernels are compiled, nothing runs.
#include "builder/tactics/cuda/lower_device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "builder/cuda/cuda_target.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/finish_lowering.h"
#include "builder/tactics/lower_grouped.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

class DeviceForms : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto version = codegen::compiler_version();
    if (!version.ok()) GTEST_SKIP() << version.error().message;
    tools_.compiler = std::make_shared<KernelCompiler>(90);
    device_.multiprocessors = 132;
  }

  TacticQuery query(Kind kind, const std::string& text) {
    auto body = ir::parse_text(text);
    EXPECT_TRUE(body.ok()) << body.error().message;
    region_ = {kind, std::make_shared<ir::Graph>(*std::move(body)), {}, ""};
    TacticQuery query{region_, {}, {}, {}, device_, {}, &tools_};
    for (ir::ValueId id : region_.body->inputs()) query.inputs.push_back(region_.body->type(id));
    for (ir::ValueId id : region_.body->outputs()) query.outputs.push_back(region_.body->type(id));
    query.constants.resize(query.inputs.size());
    return query;
  }

  Result<Lowered> lower(const TacticQuery& query) {
    KILN_ASSIGN_OR_RETURN(Lowered lowered, lower_grouped(*query.region.body));
    KILN_RETURN_IF_ERROR(finish_lowering(query, lowered));
    return lowered;
  }

  // The first provider whose first candidate can be lowered, and that.
  std::pair<std::string, Lowered> chosen(const TacticQuery& query) {
    for (const TacticProvider& provider : cuda_providers()) {
      std::string refusal;
      for (const Tactic& tactic : provider.candidates(query, refusal)) {
        auto lowered = provider.lower(query, tactic);
        if (lowered.ok() && finish_lowering(query, *lowered).ok()) {
          return {std::string(provider.name) + "/" + tactic.key, *std::move(lowered)};
        }
      }
    }
    return {};
  }

  static size_t host_steps(const Lowered& lowered) {
    return static_cast<size_t>(std::ranges::count_if(lowered.steps, [](const LocalStep& step) {
      return std::holds_alternative<HostCall>(step);
    }));
  }

  CudaTools tools_;
  DeviceInfo device_;
  ir::Region region_;
};

TEST_F(DeviceForms, PointwiseKernelsMayOverwriteWhatTheyReadInStep) {
  const auto lowered = lower(query(Kind::kLoop, R"(graph {
  input %0 : f32[8x64] "x"
  input %1 : f32[64] "row"
  input %2 : f32[8x64] "y"
  %3 = add(%0, %1) : f32[8x64] ; "a"
  %4 = mul(%3, %2) : f32[8x64] ; "m"
  output %4 "z"
})"));
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  EXPECT_EQ(host_steps(*lowered), 0u);
  EXPECT_EQ(lowered->in_place_inputs, (std::vector<uint32_t>{0, 2}));
}

TEST_F(DeviceForms, TransposesMayNotOverwrite) {
  const auto lowered = lower(query(Kind::kLoop, R"(graph {
  input %0 : f32[64x64] "x"
  %1 = transpose{perm=[1, 0]}(%0) : f32[64x64] ; "t"
  output %1 "z"
})"));
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  EXPECT_TRUE(lowered->in_place_inputs.empty());
}

constexpr char kDeterminant[] = R"(graph {
  input %0 : f32[2x2] "x"
  %1 = det{}(%0) : f32[] ; "n"
  output %1 "y"
})";

TEST_F(DeviceForms, RunsOnTheHostOnlyWhereThatIsAllowed) {
  const TacticQuery region = query(Kind::kOpaque, kDeterminant);
  const auto refused = lower(region);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "'det' has no code for the GPU");
  auto lowered = lower_grouped(*region.region.body);
  ASSERT_TRUE(lowered.ok());
  lowered->may_use_host = true;
  ASSERT_TRUE(finish_lowering(region, *lowered).ok());
  EXPECT_EQ(host_steps(*lowered), 1u);
}

TEST_F(DeviceForms, TheHostIsTheLastResort) {
  const auto [name, lowered] = chosen(query(Kind::kOpaque, kDeterminant));
  EXPECT_EQ(name, "host/grouped");
}

TEST_F(DeviceForms, TypesThatNoLibraryTakesBecomeKernels) {
  const auto [name, lowered] = chosen(query(Kind::kContraction, R"(graph {
  input %0 : u8[4x32] "a"
  input %1 : i8[32x16] "b"
  %2 = cast{saturate=1, to="i32"}(%0) : i32[4x32] ; "c"
  %3 = cast{saturate=1, to="i32"}(%1) : i32[32x16] ; "c"
  %4 = matmul{transpose_a=0, transpose_b=0}(%2, %3) : i32[4x16] ; "m"
  output %4 "y"
})"));
  EXPECT_EQ(name, "plain/grouped");
  EXPECT_EQ(lowered.steps.size(), 1u);
  EXPECT_EQ(host_steps(lowered), 0u);
}

TEST_F(DeviceForms, ScattersBecomeKernels) {
  const auto [name, lowered] = chosen(query(Kind::kOpaque, R"(graph {
  input %0 : f32[16x8] "x"
  input %1 : i64[3x1] "i"
  input %2 : f32[3x8] "u"
  %3 = scatter_nd{reduction="none"}(%0, %1, %2) : f32[16x8] ; "n"
  output %3 "y"
})"));
  EXPECT_EQ(name, "grouped/spelled out");
  EXPECT_EQ(host_steps(lowered), 0u);
}

}  // namespace
}  // namespace kiln
