#include "builder/precision/quality_record.h"

#include <gtest/gtest.h>

namespace kiln::precision {
namespace {

TEST(QualityRecord, SurvivesItsStrings) {
  const HeldQuality held{{{"conv_1", {"harms", 1.0 / 3}}, {"conv_2", {"", -1}}}, 2.5e-4, "2 of 3"};
  const auto read = held_quality_of(to_values(held));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->damage, held.damage);
  EXPECT_EQ(read->note, held.note);
  ASSERT_EQ(read->regions.size(), 2u);
  EXPECT_EQ(read->regions.at("conv_1").keep, "harms");
  EXPECT_EQ(read->regions.at("conv_1").damage, 1.0 / 3);
  EXPECT_EQ(read->regions.at("conv_2").damage, -1);
}

TEST(QualityRecord, RefusesOtherStrings) {
  using Values = std::vector<std::string>;
  for (const Values& values :
       {Values{}, Values{"1"}, Values{"x", ""}, Values{"1", "", "conv_1", ""},
        Values{"1", "", "conv_1", "", "1 "}}) {
    EXPECT_FALSE(held_quality_of(values).has_value());
  }
}

TEST(QualityRecord, QuestionsTellGraphsNamesTypesAndInputsApart) {
  const auto graph_of = [](const char* name) {
    ir::Graph graph;
    const auto x = graph.add_input("x", {DType::kF32, {2}});
    graph.mark_output(graph.result(*graph.add_node(name, {}, ir::Pointwise{ScalarFn::kExp}, {x})));
    return graph;
  };
  const auto input_of = [](std::byte first) {
    return std::vector<HostTensor>{{{DType::kF32, {1}}, SharedBytes::take({first, {}, {}, {}})}};
  };
  const ir::Graph graph = graph_of("a");
  const std::vector<std::vector<HostTensor>> inputs = {input_of({})};
  const std::string question = quality_question(graph, DType::kF16, DType::kF32, inputs);
  EXPECT_EQ(question, quality_question(graph, DType::kF16, DType::kF32, inputs));
  EXPECT_NE(question, quality_question(graph_of("b"), DType::kF16, DType::kF32, inputs));
  EXPECT_NE(question, quality_question(graph, DType::kBF16, DType::kF32, inputs));
  EXPECT_NE(question, quality_question(graph, DType::kF16, DType::kF16, inputs));
  EXPECT_NE(question, quality_question(graph, DType::kF16, DType::kF32, {}));
  const std::vector<std::vector<HostTensor>> others = {input_of(std::byte{1})};
  EXPECT_NE(question, quality_question(graph, DType::kF16, DType::kF32, others));
}

}  // namespace
}  // namespace kiln::precision
