#include "engine/cuda/steps/cudnn_graph.h"

#include <gtest/gtest.h>

#include "tests/engine/cuda/fake_cudnn.h"

namespace kiln::cuda {
namespace {

plan::Operand operand(uint64_t offset, const TensorType& type) {
  return {{plan::BufferRef::Space::kArena, 0, offset, static_cast<uint64_t>(type.bytes())}, type};
}

struct Case {
  plan::CudnnGraph step{0,
                        {operand(0, {DType::kF16, {2, 3}}), operand(256, {DType::kF16, {3}})},
                        {operand(512, {DType::kF16, {2, 3}})},
                        {plan::BufferRef::Space::kArena, 0, 1024, 100}};
  Operation operation = Operation{kCudnnGraphOperation, {}}
                            .set("plan", std::string("{json}"))
                            .set("uids", std::vector<int64_t>{1, 2, 7})
                            .set("offsets", std::vector<int64_t>{0, 0, 0})
                            .set("bytes", std::vector<int64_t>{12, 6, 12})
                            .set("scalar_uids", std::vector<int64_t>{9})
                            .set("scalars", std::vector<double>{0.125})
                            .set("version", int64_t{91900});
};

std::string fault_of(const Operation& operation) {
  const auto call = decode_cudnn_call(operation, Case().step);
  if (call.ok()) return "";
  EXPECT_EQ(call.error().code, ErrorCode::kCorruptData);
  return call.error().message;
}

TEST(CudnnGraph, DecodesWhatTheBuilderStores) {
  const Case one;
  const auto call = decode_cudnn_call(one.operation, one.step);
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_EQ(call->plan, "{json}");
  EXPECT_EQ(call->uids, (std::vector<int64_t>{1, 2, 7}));
  EXPECT_EQ(call->scalars, (std::vector<float>{0.125F}));
  EXPECT_EQ(call->version, 91900U);
}

TEST(CudnnGraph, RefusesOperationsThatDoNotFitTheStep) {
  const auto damaged = [](const char* key, AttributeValue value) {
    Case one;
    return fault_of(one.operation.set(key, std::move(value)));
  };
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(damaged("plan", std::string()), "cuDNN graph: it has no plan");
  EXPECT_EQ(damaged("plan", int64_t{3}), "cuDNN graph: it has no plan");
  EXPECT_EQ(damaged("uids", Ints{1, 2}),
            "cuDNN graph: it has 2 ids, 3 offsets and 3 lengths for 3 operands");
  EXPECT_EQ(damaged("bytes", Ints{12, 6, 12, 1}),
            "cuDNN graph: it has 3 ids, 3 offsets and 4 lengths for 3 operands");
  EXPECT_EQ(damaged("bytes", Ints{12, 6, 24}),
            "cuDNN graph: operand 2 has 12 bytes, its plan takes 24 from 0");
  EXPECT_EQ(damaged("offsets", Ints{0, 0, 2}),
            "cuDNN graph: operand 2 has 12 bytes, its plan takes 12 from 2");
  EXPECT_EQ(damaged("offsets", Ints{0, -2, 0}),
            "cuDNN graph: operand 1 has 6 bytes, its plan takes 6 from -2");
  EXPECT_EQ(damaged("offsets", Ints{INT64_MAX, 0, 0}),
            "cuDNN graph: operand 0 has 12 bytes, its plan takes 12 from 9223372036854775807");
  EXPECT_EQ(damaged("uids", Ints{1, 1, 7}), "cuDNN graph: an id repeats");
  EXPECT_EQ(damaged("scalar_uids", Ints{7}), "cuDNN graph: an id repeats");
  EXPECT_EQ(damaged("scalars", std::vector<double>{}), "cuDNN graph: it has 1 ids for 0 scalars");
  Case other;
  other.operation.name = "conv";
  EXPECT_EQ(fault_of(other.operation),
            "cuDNN graph: found operation 'conv', expected 'cudnn.graph'");
}

TEST(CudnnGraph, LoadsAPlanOnlyOnItsOwnVersion) {
  FakeCudnn fake;
  const CudnnApi api = fake.api();
  const Case one;
  const auto call = decode_cudnn_call(one.operation, one.step);
  ASSERT_TRUE(call.ok());
  const auto handle = reinterpret_cast<cudnnHandle_t>(0x10);
  {
    const auto plan = load_cudnn_plan(api, handle, *call, one.step);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto* record = static_cast<const FakeCudnnDescriptor*>(plan->get());
    EXPECT_EQ(record->text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), "{json}");
    EXPECT_TRUE(record->finalized);
    fake.workspace = 101;
    const auto larger = load_cudnn_plan(api, handle, *call, one.step);
    ASSERT_FALSE(larger.ok());
    EXPECT_EQ(larger.error().message, "workspace has 100 bytes, the kernel needs 101");
    fake.version = 92000;
    const auto newer = load_cudnn_plan(api, handle, *call, one.step);
    ASSERT_FALSE(newer.ok());
    EXPECT_EQ(newer.error().code, ErrorCode::kVersionMismatch);
    EXPECT_EQ(newer.error().message,
              "cuDNN graph: made with cuDNN 91900, found 92000; install that version or build the "
              "engine again");
  }
  EXPECT_EQ(fake.live, 0);
}

TEST(CudnnGraph, EveryFailingCallIsAnErrorAndLeavesNothingBehind) {
  FakeCudnn fake;
  const CudnnApi api = fake.api();
  const Case one;
  const auto call = decode_cudnn_call(one.operation, one.step);
  ASSERT_TRUE(call.ok());
  const auto load = [&] {
    fake.calls = 0;
    return load_cudnn_plan(api, reinterpret_cast<cudnnHandle_t>(0x10), *call, one.step);
  };
  ASSERT_TRUE(load().ok());
  const int calls = fake.calls;
  for (fake.failing_call = 0; fake.failing_call < calls; ++fake.failing_call) {
    fake.failure = CUDNN_STATUS_ALLOC_FAILED;
    const auto plan = load();
    ASSERT_FALSE(plan.ok()) << fake.failing_call;
    EXPECT_EQ(plan.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(fake.live, 0);
  }
  fake.failing_call = 1;
  fake.failure = CUDNN_STATUS_NOT_SUPPORTED;
  EXPECT_EQ(load().error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace kiln::cuda
