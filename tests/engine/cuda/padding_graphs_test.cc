// Requests between buckets on a fake driver.
#include "engine/cuda/padding_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/cuda/fake_driver.h"
#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::FakeDriver;

constexpr int64_t kBatch = 11;

Result<Engine> load(plan::Plan plan) {
  plan.origin.target = plan::Target::kCuda;
  plan.origin.compute_capability = 90;
  LoadOptions options;
  options.host_kernels = testing::fake_kernels();
  options.cuda_libraries = FakeDriver::instance().libraries();
  return testing::load_plan(plan, options);
}

// y = 2 x of shape [batch, 2] or [3, batch, 2]; y does not grow with the batch, so that a request
// sees all rows of the bucket.
Result<Engine> load_doubling(const Shape& bucket, int32_t batch_axis) {
  plan::Plan plan =
      testing::scale_plan({testing::point_of("b11", kBatch, {DType::kF32, bucket})}, batch_axis);
  plan.outputs[0].batch_axis = -1;
  return load(std::move(plan));
}

// Twice `blocks` times `rows` rows of 2, the last one repeated.
std::vector<float> doubled(const std::vector<float>& x, int64_t blocks, int64_t rows) {
  std::vector<float> y;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t row = 0; row < kBatch; ++row) {
      const int64_t from = block * rows + std::min(row, rows - 1);
      for (int64_t i : {2 * from, 2 * from + 1}) y.push_back(2 * x[static_cast<size_t>(i)]);
    }
  }
  return y;
}

void expect_last_row_repeated(const Shape& bucket, int32_t batch_axis) {
  const auto engine = load_doubling(bucket, batch_axis);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const int64_t blocks = batch_axis == 0 ? 1 : bucket[0];
  for (int64_t rows = 1; rows <= kBatch; ++rows) {
    std::vector<float> x(static_cast<size_t>(blocks * rows * 2));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
    std::vector<float> y(static_cast<size_t>(blocks * kBatch * 2));
    Shape shape = bucket;
    shape[static_cast<size_t>(batch_axis)] = rows;
    const Tensor in = testing::tensor("", shape, x), out = testing::tensor("", bucket, y);
    FakeDriver::instance().reset();
    const auto ran = engine->infer({&in, 1}, {&out, 1});
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(y, doubled(x, blocks, rows)) << rows << " rows";
    // The step runs on the host.
    EXPECT_EQ(FakeDriver::instance().launches(), rows < kBatch ? 1 : 0) << rows << " rows";
  }
}

TEST(PaddingGraphs, RepeatTheLastRow) { expect_last_row_repeated({kBatch, 2}, 0); }
TEST(PaddingGraphs, RepeatRowsWhoseBatchIsNotFirst) { expect_last_row_repeated({3, kBatch, 2}, 1); }

// Rows of two inputs of different widths are repeated by one launch.
TEST(PaddingGraphs, OneLaunchPadsAllInputs) {
  plan::Plan plan = testing::scale_plan({testing::point_of("b4", 4, {DType::kF32, {4, 2}})}, 0);
  plan.inputs.push_back({"unused", 0});
  plan.points[0].inputs.push_back({DType::kF32, {4, 3}});
  const auto engine = load(std::move(plan));
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  std::vector<float> x = {1, 2}, unused = {3, 4, 5}, y(2);
  const Tensor in[] = {testing::tensor("x", {1, 2}, x), testing::tensor("unused", {1, 3}, unused)};
  const Tensor out = testing::tensor("y", {1, 2}, y);
  FakeDriver::instance().reset();
  const auto ran = engine->infer(in, {&out, 1});
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(y, (std::vector<float>{2, 4}));
  EXPECT_EQ(FakeDriver::instance().launches(), 1);
}

}  // namespace
}  // namespace kiln
