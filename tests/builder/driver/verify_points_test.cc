// Builds with tactics that lie: right on what the judge tries, wrong inside the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "builder/driver/build_for_target.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/tactics/lower_nodes.h"
#include "engine/engine.h"
#include "engine/host_kernels.h"
#include "formats/npy/array_file.h"
#include "tests/builder/import/model_fixtures.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

// y = -|x w|. The judge gives a region normal values, of which none here reaches kCeiling; the
// product's last column in the model does.
constexpr float kCeiling = 8;
constexpr int64_t kWide = 4, kColumns = 3;
const std::vector<float> kWeights = {0.1F,  0.2F,  20, -0.1F, 0.1F,  -30,
                                     -0.2F, -0.1F, 40, 0.1F,  -0.2F, 10};

onnx::Model magnitudes() {
  using namespace onnx_import;
  onnx::Model made =
      model({value("x", DType::kF32, {"N", kWide})},
            {node("product", "MatMul", {"x", "w"}, {"p"}), node("magnitude", "Abs", {"p"}, {"m"}),
             node("negative", "Neg", {"m"}, {"y"})},
            {"y"});
  made.graph.initializers.push_back(tensor("w", DType::kF32, {kWide, kColumns}, kWeights));
  return made;
}

std::vector<float> expected(const std::vector<float>& x) {
  std::vector<float> y;
  for (size_t row = 0; row < x.size() / kWide; ++row) {
    for (size_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (size_t k = 0; k < kWide; ++k)
        sum += x[row * kWide + k] * kWeights[k * kColumns + column];
      y.push_back(-std::abs(sum));
    }
  }
  return y;
}

// The region, but what it makes of values beyond the ceiling is cut off there.
Result<Lowered> lower_saturated(const TacticQuery& query, const Tactic&) {
  ir::Graph body;
  const ir::ValueId x = body.add_input("x", query.inputs[0]);
  ir::ValueId y = ir::inline_graph(body, *query.region.body, {&x, 1})[0];
  for (const float limit : {kCeiling, -kCeiling}) {
    std::vector<std::byte> bytes(sizeof limit);
    std::memcpy(bytes.data(), &limit, sizeof limit);
    const ir::ValueId bound =
        body.add_constant("limit", {DType::kF32, {}}, SharedBytes::take(std::move(bytes)));
    const ScalarFn fn = limit > 0 ? ScalarFn::kMin : ScalarFn::kMax;
    KILN_ASSIGN_OR_RETURN(const auto node, body.add_node("cut", {}, ir::Pointwise{fn}, {y, bound}));
    y = body.result(node);
  }
  body.mark_output(y);
  NodeLowering lowering;
  KILN_RETURN_IF_ERROR(lowering.lower_region(body));
  return std::move(lowering).take();
}

bool has_abs(const TacticQuery& query) {
  const auto order = query.region.body->topological_order();
  return std::any_of(order.begin(), order.end(), [&](ir::NodeId id) {
    return query.region.body->node(id).op == ir::Op(ir::Pointwise{ScalarFn::kAbs});
  });
}

std::vector<Tactic> tactics(bool offered, std::string& refusal, int count = 1) {
  if (!offered) refusal = "is for others";
  std::vector<Tactic> result;
  for (int i = 0; offered && i < count; ++i) result.push_back({std::to_string(i)});
  return result;
}

constexpr TacticProvider kLies = {
    "lies", 1, Trial::kAlways,
    [](const TacticQuery& query, std::string& refusal) { return tactics(has_abs(query), refusal); },
    lower_saturated};
constexpr TacticProvider kLiesOfFourRows = {
    "lies", 1, Trial::kAlways,
    [](const TacticQuery& query, std::string& refusal) {
      return tactics(has_abs(query) && query.outputs[0].shape[0] == 4, refusal);
    },
    lower_saturated};
constexpr TacticProvider kLiesOfSeveral = {
    "lies", 1, Trial::kAlways,
    [](const TacticQuery& query, std::string& refusal) {
      return tactics(has_abs(query) && query.region.body->node_count() > 1, refusal);
    },
    lower_saturated};
constexpr TacticProvider kTenLies = {"lies", 1, Trial::kAlways,
                                     [](const TacticQuery& query, std::string& refusal) {
                                       return tactics(has_abs(query), refusal, 10);
                                     },
                                     lower_saturated};

Result<Lowered> lower_honestly(const TacticQuery& query, const Tactic&) {
  NodeLowering lowering;
  KILN_RETURN_IF_ERROR(lowering.lower_region(*query.region.body));
  return std::move(lowering).take();
}

// Never tried where a lie passed: no clock decides.
constexpr TacticProvider kHonest = {
    "honest", 1, Trial::kNever,
    [](const TacticQuery&, std::string& refusal) { return tactics(true, refusal); },
    lower_honestly};
constexpr TacticProvider kHonestOfOthers = {"honest", 1, Trial::kNever,
                                            [](const TacticQuery& query, std::string& refusal) {
                                              return tactics(!has_abs(query), refusal);
                                            },
                                            lower_honestly};
constexpr TacticProvider kHonestOfOne = {"honest", 1, Trial::kNever,
                                         [](const TacticQuery& query, std::string& refusal) {
                                           return tactics(query.region.body->node_count() == 1,
                                                          refusal);
                                         },
                                         lower_honestly};

class VerifyPoints : public ::testing::Test {
 protected:
  VerifyPoints() {
    options_.target = BuildTarget::kHost;
    options_.batches = {1, 4};
    options_.output = folder_ / "m.engine";
    options_.timing_cache = folder_ / "t.json";
    options_.disabled_passes = {"fuse-contraction-epilogues", "fuse-loops"};
  }

  Result<BuildResult> build(std::vector<TacticProvider> providers) {
    KILN_ASSIGN_OR_RETURN(const auto points, onnx_import::plan_shape_points(model_, options_));
    LoadedTimingCache cache = load_timing_cache(options_.timing_cache);
    KILN_ASSIGN_OR_RETURN(ChosenTarget target, choose_target(options_, cache.cache));
    target.providers = std::move(providers);
    const ProgressFn none;
    ProgressMeter meter(none);
    return build_for_target(model_, points, options_, std::move(target), std::move(cache), {},
                            meter);
  }

  // What the engine file says of as many rows as there are.
  std::vector<float> answers(std::vector<float> x) const {
    const auto rows = static_cast<int64_t>(x.size()) / kWide;
    std::vector<float> y(static_cast<size_t>(rows * kColumns));
    LoadOptions load;
    load.host_kernels = host_kernels();
    load.allow_unverified = !options_.verify;
    const auto engine = Engine::load(options_.output, load);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    if (!engine.ok()) return {};
    const Tensor in{"x", {DType::kF32, {rows, kWide}}, reinterpret_cast<std::byte*>(x.data())};
    const Tensor out{"y", {DType::kF32, {rows, kColumns}}, reinterpret_cast<std::byte*>(y.data())};
    const auto ran = engine->infer({&in, 1}, {&out, 1});
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    return y;
  }

  void expect_right_answers() const {
    for (const size_t rows : {1U, 3U, 4U}) {
      const std::vector<float> x(kRows.begin(), kRows.begin() + static_cast<ptrdiff_t>(rows * 4));
      const std::vector<float> got = answers(x), want = expected(x);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
    }
  }

  // Notes on what verification found, in order.
  static std::vector<std::string> repairs(const BuildResult& result) {
    std::vector<std::string> found;
    for (const std::string& note : result.notes) {
      if (note.find("disagrees with the reference") != std::string::npos) found.push_back(note);
    }
    return found;
  }

  // The worst element, in the output and in the region, as found and as expected.
  static void expect_cut_off(const std::string& text) {
    EXPECT_NE(text.find("output 'y', row 0: element 2 is -8, expected -"), std::string::npos)
        << text;
    const size_t region = text.find("region 'magnitude': element ");
    ASSERT_NE(region, std::string::npos) << text;
    EXPECT_NE(text.find(" is 8, expected ", region), std::string::npos) << text;
  }

  // A failed build left the older engine alone, and the inputs that show what is wrong.
  void expect_nothing_written(const Result<BuildResult>& built) {
    ASSERT_FALSE(built.ok());
    EXPECT_EQ(built.error().code, ErrorCode::kVerification);
    const std::string& message = built.error().message;
    EXPECT_NE(message.find("shape point 'b1'"), std::string::npos) << message;
    EXPECT_NE(message.find("nothing was written"), std::string::npos) << message;
    EXPECT_NE(message.find("please report this"), std::string::npos) << message;
    expect_cut_off(message);
    EXPECT_EQ(testing::read_text(options_.output), "older");
    const std::string kept = options_.output.string() + ".failing.npz";
    EXPECT_NE(message.find("kept in '" + kept + "'"), std::string::npos) << message;
    const auto arrays = npy::read_arrays(kept);
    ASSERT_TRUE(arrays.ok()) << arrays.error().message;
    ASSERT_EQ(arrays->size(), 1U);
    EXPECT_EQ((*arrays)[0].name, "x");
    ASSERT_EQ((*arrays)[0].type, (TensorType{DType::kF32, {1, kWide}}));
    std::vector<float> x(kWide);
    std::memcpy(x.data(), (*arrays)[0].data.data(), sizeof(float) * x.size());
    const std::string before = "element 2 is -8, expected ";
    const float told = std::stof(message.substr(message.find(before) + before.size()));
    EXPECT_LT(told, -kCeiling);
    EXPECT_NEAR(expected(x)[2], told, 1e-4) << "the kept inputs do not show the fault";
  }

  // The last column is beyond the ceiling in every row.
  const std::vector<float> kRows = {1, 2, 3, 4,  -1, 0.5F, -2, 1, 0.25F, -1,
                                    1, 1, 2, -2, -1, 0,    3,  1, 1,     1};
  const testing::ScratchFolder folder_;
  const onnx::Model model_ = magnitudes();
  BuildOptions options_;
};

// The lie is one: no judge sees it, and the engine is wrong.
TEST_F(VerifyPoints, IsWhatFindsTheLie) {
  options_.verify = false;
  ASSERT_TRUE(build({kLies, kHonest}).ok());
  const std::vector<float> row(kRows.begin(), kRows.begin() + kWide);
  EXPECT_FLOAT_EQ(answers(row)[2], -kCeiling);
  EXPECT_FLOAT_EQ(expected(row)[2], -120);
}

TEST_F(VerifyPoints, TakesAnotherTactic) {
  const auto built = build({kLies, kHonest});
  ASSERT_TRUE(built.ok()) << built.error().message;
  expect_right_answers();
  const auto found = repairs(*built);
  ASSERT_EQ(found.size(), 2U);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].find(i == 0 ? "shape point 'b1'" : "shape point 'b4'"), 0U) << found[i];
    EXPECT_NE(found[i].find("trying another tactic"), std::string::npos) << found[i];
    expect_cut_off(found[i]);
  }
  EXPECT_NE(built->report_json.find("disagreed with the reference in the finished engine"),
            std::string::npos);
  // The timing cache remembers.
  const auto again = build({kLies, kHonest});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(repairs(*again), std::vector<std::string>());
  expect_right_answers();
}

TEST_F(VerifyPoints, FindsWhatIsWrongAtOneBatchSize) {
  const auto built = build({kLiesOfFourRows, kHonest});
  ASSERT_TRUE(built.ok()) << built.error().message;
  expect_right_answers();
  const auto found = repairs(*built);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].find("shape point 'b4'"), 0U) << found[0];
  EXPECT_NE(found[0].find("region 'magnitude'"), std::string::npos) << found[0];
}

TEST_F(VerifyPoints, TakesARegionApart) {
  options_.disabled_passes = {"fuse-contraction-epilogues"};
  const auto built = build({kLiesOfSeveral, kHonestOfOne});
  ASSERT_TRUE(built.ok()) << built.error().message;
  expect_right_answers();
  const auto found = repairs(*built);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find("region 'magnitude + negative'"), std::string::npos) << found[0];
  std::vector<std::string> names;
  const auto report = nlohmann::json::parse(built->report_json);
  for (const auto& region : report["points"][0]["regions"]) names.push_back(region["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"product", "magnitude", "negative"}));
}

TEST_F(VerifyPoints, FailsWhereEveryTacticLies) {
  folder_.write("m.engine", "older");
  const auto built = build({kLies, kHonestOfOthers});
  expect_nothing_written(built);
  EXPECT_NE(built.error().message.find("no tactic is right: lies/0"), std::string::npos)
      << built.error().message;
}

TEST_F(VerifyPoints, GivesUpAfterEightTactics) {
  folder_.write("m.engine", "older");
  const auto built = build({kTenLies, kHonest});
  expect_nothing_written(built);
  EXPECT_NE(built.error().message.find("8 repairs did not help"), std::string::npos)
      << built.error().message;
}

TEST_F(VerifyPoints, RemembersAfterAFailureWhatWasWrong) {
  options_.batches = {1};
  ASSERT_FALSE(build({kTenLies, kHonest}).ok());
  // Eight lies are known for what they are: two are left, and then the truth.
  const auto built = build({kTenLies, kHonest});
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(repairs(*built).size(), 2U);
  EXPECT_NEAR(answers({1, 2, 3, 4})[2], expected({1, 2, 3, 4})[2], 1e-4);
}

TEST_F(VerifyPoints, WritesNoFirstEngineThatIsWrong) {
  ASSERT_FALSE(build({kLies, kHonestOfOthers}).ok());
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

}  // namespace
}  // namespace kiln
