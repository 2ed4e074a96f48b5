// Which models may have their requests padded, where the proof depends on more than the graph.
#include <gtest/gtest.h>

#include "builder/driver/build_for_target.h"
#include "builder/import/onnx/shape_points.h"
#include "engine/engine.h"
#include "engine/host_kernels.h"
#include "tests/builder/import/model_fixtures.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

constexpr int64_t kTokens = 256;

// As exporters write masks: y[n, t] = x as a whole [n * tokens + t], or with every row that of the
// next, whose indices are computed from the batch's size.
onnx::Model gathered(bool of_the_next) {
  using namespace onnx_import;
  std::vector<int64_t> tokens(kTokens);
  for (int64_t t = 0; t < kTokens; ++t) tokens[static_cast<size_t>(t)] = t;
  onnx::Model made = model(
      {value("x", DType::kF32, {"N", kTokens})},
      {node("shape", "Shape", {"x"}, {"s"}), node("rows", "Gather", {"s", "zero"}, {"n"}),
       node("numbers", "Range", {"zero", "n", "one"}, {"r"}),
       node("shifted", "Add", {"r", of_the_next ? "one" : "zero"}, {"r1"}),
       node("wrapped", "Mod", {"r1", "n"}, {"r2"}),
       node("column", "Unsqueeze", {"r2", "axis"}, {"c"}),
       node("firsts", "Mul", {"c", "tokens"}, {"f"}), node("indices", "Add", {"f", "t"}, {"i"}),
       node("flat", "Reshape", {"x", "all"}, {"v"}), node("gather", "Gather", {"v", "i"}, {"g"}),
       node("negative", "Neg", {"g"}, {"y"})},
      {"y"});
  auto& constants = made.graph.initializers;
  constants.push_back(tensor("zero", DType::kI64, {}, std::vector<int64_t>{0}));
  constants.push_back(tensor("one", DType::kI64, {}, std::vector<int64_t>{1}));
  constants.push_back(tensor("axis", DType::kI64, {1}, std::vector<int64_t>{1}));
  constants.push_back(tensor("tokens", DType::kI64, {}, std::vector<int64_t>{kTokens}));
  constants.push_back(tensor("t", DType::kI64, {1, kTokens}, tokens));
  constants.push_back(tensor("all", DType::kI64, {1}, std::vector<int64_t>{-1}));
  return made;
}

class AnalyseRows : public ::testing::Test {
 protected:
  // Builds and loads; whether requests are padded.
  void expect_padding(const onnx::Model& model, std::vector<int64_t> batches, bool padding) {
    BuildOptions options;
    options.target = BuildTarget::kHost;
    options.batches = std::move(batches);
    options.output = folder_ / "m.engine";
    const auto points = onnx_import::plan_shape_points(model, options);
    ASSERT_TRUE(points.ok()) << points.error().message;
    auto target = choose_target(options, {});
    ASSERT_TRUE(target.ok()) << target.error().message;
    const ProgressFn none;
    ProgressMeter meter(none);
    const auto built = build_for_target(model, *points, options, std::move(*target), {}, {}, meter);
    ASSERT_TRUE(built.ok()) << built.error().message;
    LoadOptions load;
    load.host_kernels = host_kernels();
    const auto engine = Engine::load(options.output, load);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    EXPECT_EQ(engine->info().batch_padding, padding) << engine->info().batch_padding_reason;
  }

  const testing::ScratchFolder folder_;
};

TEST_F(AnalyseRows, SeesThroughIndicesOfFewAndOfManyRows) {
  expect_padding(gathered(false), {1, 4}, true);
  expect_padding(gathered(false), {1, 64}, true);  // 16,384 indices
}

TEST_F(AnalyseRows, SeesRowsThatTakeTheNextOnes) {
  expect_padding(gathered(true), {1, 4}, false);
  expect_padding(gathered(true), {1, 64}, false);
}

}  // namespace
}  // namespace kiln
