#include "builder/codegen/cuda/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/codegen/cuda/kernel_cases.h"

namespace kiln::codegen {
namespace {

TEST(CudaSchedule, TextReadsBackAsTheSame) {
  const CudaSchedule schedule{
      .family = Family::kRows, .threads = 128, .vector = 8, .unroll = 2, .group = 32, .keep = true};
  EXPECT_EQ(to_text(schedule), "rows threads=128 vector=8 unroll=2 group=32 keep");
  EXPECT_EQ(parse_cuda_schedule(to_text(schedule)), schedule);
  for (const KernelCase& c : kernel_cases()) {
    for (const CudaSchedule& s : cuda_schedules(*lower_to_loop(c.body.graph), {})) {
      EXPECT_EQ(parse_cuda_schedule(to_text(s)), s);
    }
  }
}

TEST(CudaSchedule, DamagedTextIsRefused) {
  for (const char* text :
       {"", "row threads=128", "rows threads", "rows threads=", "rows threads=1x",
        "rows threads=99999999999", "rows depth=3", "rows  threads=1"}) {
    EXPECT_EQ(parse_cuda_schedule(text), std::nullopt) << text;
  }
}

std::vector<CudaSchedule> schedules_of(const Body& body) {
  return cuda_schedules(*lower_to_loop(body.graph), {});
}

TEST(CudaSchedule, ListsAreShortAndWithoutRepetition) {
  for (const KernelCase& c : kernel_cases()) {
    std::vector<CudaSchedule> list = schedules_of(c.body);
    ASSERT_FALSE(list.empty()) << c.name;
    EXPECT_LE(list.size(), 12u) << c.name;
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(std::ranges::count(list, list[i]), 1) << c.name << " " << to_text(list[i]);
    }
  }
}

TEST(CudaSchedule, BestGuessIsOfTheFamilyThatTheKernelIsMadeFor) {
  const auto first = [](const Body& body) { return schedules_of(body).front().family; };
  Body add;
  const auto x = add.in("f16[4096x4096]");
  add.out(add.fn(ScalarFn::kAdd, {x, x}));
  EXPECT_EQ(first(add), Family::kPoints);
  Body softmax;
  softmax.out(softmax.softmax(softmax.in("f16[4096x1024]"), 1));
  EXPECT_EQ(first(softmax), Family::kRows);
  EXPECT_TRUE(schedules_of(softmax).front().keep);
  Body columns;
  columns.out(columns.reduce(ReduceFn::kSum, columns.in("f32[4096x1024]"), {0}));
  EXPECT_EQ(first(columns), Family::kColumns);
  Body transpose;
  transpose.out(transpose.transpose(transpose.in("f32[1024x1024]"), {1, 0}));
  EXPECT_EQ(first(transpose), Family::kTiles);
  Body sum;
  sum.out(sum.reduce(ReduceFn::kSum, sum.in("f32[4x1048576]"), {1}));
  // The first is always one launch without a workspace.
  EXPECT_EQ(first(sum), Family::kRows);
  EXPECT_EQ(schedules_of(sum)[1].family, Family::kSplit);
}

TEST(CudaSchedule, WhatNoCacheHoldsIsStreamedToo) {
  const auto streams = [](std::string_view type) {
    Body body;
    body.out(body.softmax(body.in(type), 1));
    return std::ranges::count(schedules_of(body), true, &CudaSchedule::stream);
  };
  EXPECT_EQ(streams("bf16[65536x1024]"), 3);
  EXPECT_EQ(streams("bf16[64x1024]"), 0);
}

TEST(CudaSchedule, LongRowsAreSpreadOverClusters) {
  Body body;
  body.out(body.softmax(body.in("bf16[8192x65536]"), 1));
  const std::vector<CudaSchedule> list = schedules_of(body);
  const auto in_cluster = [](const CudaSchedule& s) { return s.group > s.threads; };
  EXPECT_GT(std::ranges::count_if(list, in_cluster), 1);
  EXPECT_FALSE(in_cluster(list.front()));
  const auto cluster = std::ranges::find_if(list, in_cluster);
  const auto source = emit_cuda(*lower_to_loop(body.graph), *cluster);
  ASSERT_TRUE(source.ok());
  const CudaLaunch& launch = source->launches.front();
  EXPECT_EQ(launch.cluster, cluster->group / cluster->threads);
  EXPECT_EQ(launch.blocks, 8192u * launch.cluster);
}

TEST(CudaSchedule, WhatDoesNotSuitTheKernelIsRefusedWithTheReason) {
  Body body;
  body.out(body.softmax(body.in("f32[8x30]"), 1));
  const auto kernel = lower_to_loop(body.graph);
  const auto refusal = [&](const CudaSchedule& schedule) {
    const auto source = emit_cuda(*kernel, schedule);
    return source.ok() ? std::string("accepted") : source.error().message;
  };
  EXPECT_EQ(refusal({.family = Family::kPoints}),
            "schedule 'points threads=256 vector=1 unroll=1 group=1': the kernel reduces");
  EXPECT_EQ(refusal({.family = Family::kRows, .vector = 4, .group = 8}),
            "schedule 'rows threads=256 vector=4 unroll=1 group=8': the innermost dim has 30 "
            "points");
  EXPECT_NE(refusal({.threads = 100}).find("threads must be a power of 2"), std::string::npos);
  EXPECT_NE(refusal({.family = Family::kTiles, .group = 32}).find("reduces"), std::string::npos);
  EXPECT_EQ(refusal({.family = Family::kRows, .vector = 2, .group = 16, .keep = true}), "accepted");
  EXPECT_NE(refusal({.family = Family::kRows, .vector = 2, .group = 16, .stream = true})
                .find("it streams nothing"),
            std::string::npos);
}

// A row whose loads all rows share keeps nothing, and must not become a million lines either.
TEST(CudaSchedule, LongRowsAreNotUnrolled) {
  Body body;
  const auto w = body.in("f32[1x1048576]");
  body.out(body.reduce(ReduceFn::kSum, body.op(ir::Broadcast{{4, 1048576}}, {w}), {1}));
  const auto kernel = lower_to_loop(body.graph);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  for (const CudaSchedule& s : cuda_schedules(*kernel, {})) EXPECT_FALSE(s.keep) << to_text(s);
  const CudaSchedule kept{.family = Family::kRows, .threads = 128, .group = 32, .keep = true};
  EXPECT_FALSE(emit_cuda(*kernel, kept).ok());
}

// Pieces that begin on a boundary of the lanes are chosen whole, before they are taken apart.
TEST(EmitCudaText, ConcatChoosesPacks) {
  const auto text = [](const char* first, const char* second, const char* sum) {
    Body body;
    const auto a = body.op(ir::Cast{DType::kF32, true}, {body.in(first)});
    const auto b = body.op(ir::Cast{DType::kF32, true}, {body.in(second)});
    body.out(body.fn(ScalarFn::kMul, {body.op(ir::Concat{1}, {a, b}), body.in(sum)}));
    const auto kernel = lower_to_loop(body.graph);
    EXPECT_TRUE(kernel.ok());
    const auto source =
        emit_cuda(*kernel, {.family = Family::kPoints, .threads = 64, .vector = 8, .unroll = 1});
    EXPECT_TRUE(source.ok()) << source.error().message;
    return source.ok() ? source->text : "";
  };
  const std::string aligned = text("f16[4x24]", "f16[4x8]", "f32[32]");
  EXPECT_NE(aligned.find("? r"), std::string::npos) << aligned;
  EXPECT_EQ(aligned.find("op_where"), std::string::npos) << aligned;
  const std::string crossing = text("f16[4x20]", "f16[4x12]", "f32[32]");
  EXPECT_NE(crossing.find("op_where"), std::string::npos) << crossing;
}

TEST(EmitCudaText, Softmax) {
  Body body;
  body.out(body.softmax(body.in("f16[8x256]"), 1));
  const auto source =
      emit_cuda(*lower_to_loop(body.graph),
                {.family = Family::kRows, .threads = 64, .vector = 8, .group = 32, .keep = true});
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->launches, (std::vector<CudaLaunch>{{"kiln_rows", 4, 64}}));
  EXPECT_EQ(source->text, R"(KILN_KERNEL(64) kiln_rows(const void* b0, void* b1) {
  begin_kernel();
  const int lane = (int)(threadIdx.x % 32);
  const int point = ((int)blockIdx.x * 2 + (int)threadIdx.x / 32);
  const int d0 = point;
  Pack<f16, 8> r0[1];
  float p3[1][8];
  float a1 = Max::start<f16>();
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    const int at = ((int)c * 32 + lane) * 8;
    const int d1 = at;
    r0[c] = load<f16, 8>(b0, 256 * d0 + d1);
  }
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    const int at = ((int)c * 32 + lane) * 8;
    const int d1 = at;
    #pragma unroll
    for (int l = 0; l < 8; ++l) {
      const float x0 = get(r0[c], l);
      a1 = Max::step<f16>(a1, x0);
    }
  }
  const float x1 = reduce_lanes<Max, f16, 32>(a1);
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    forget(r0[c].words);
  }
  float a4 = Sum::start<f16>();
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    const int at = ((int)c * 32 + lane) * 8;
    const int d1 = at;
    #pragma unroll
    for (int l = 0; l < 8; ++l) {
      const float x0 = get(r0[c], l);
      const float x2 = op_sub<f16>(x0, x1);
      const float x3 = quick_exp(x2);
      p3[c][l] = x3;
      a4 = Sum::step<f16>(a4, x3);
    }
  }
  const float x4 = reduce_lanes<Sum, f16, 32>(a4);
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    forget(r0[c].words);
  }
  #pragma unroll
  for (int c = 0; c < 1; ++c) {
    const int at = ((int)c * 32 + lane) * 8;
    const int d1 = at;
    Pack<f16, 8> o6;
    #pragma unroll
    for (int l = 0; l < 8; ++l) {
      const float x5 = divide_by_shared<f16>(p3[c][l], x4);
      put(o6, l, x5);
    }
    store(b1, 256 * d0 + d1, o6);
  }
}
)");
}

}  // namespace
}  // namespace kiln::codegen
