#include "builder/layout/choose_layouts.h"

#include <gtest/gtest.h>

#include "builder/tactics/epilogue_chain.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/precision/narrowed.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using test::narrowed;

struct Counts {
  int convolutions = 0, channels_last = 0, conversions = 0;
};

Counts count(const ir::Graph& graph) {
  Counts counts;
  for (ir::NodeId id : graph.topological_order()) {
    const auto& region = std::get<ir::Region>(graph.node(id).op);
    counts.conversions += region.rule == "choose-layouts";
    if (region.kind != ir::Region::Kind::kConvolution) continue;
    counts.convolutions += 1;
    const auto chain = match_anchor(*region.body);
    const bool last =
        chain.ok() && chain->operands[0].channels_last && chain->operands[1].channels_last;
    counts.channels_last += last;
  }
  return counts;
}

class LayoutModels : public testing::TestWithParam<std::string> {};

TEST_P(LayoutModels, EveryConvolutionReadsChannelsLastAndResultsStay) {
  const auto imported = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const ir::Graph before = narrowed(*imported, false), after = narrowed(*imported, true);
  const Counts counts = count(after);
  EXPECT_GT(counts.convolutions, 0);
  EXPECT_EQ(counts.channels_last, counts.convolutions);
  // One in front of the first convolution at most: everything between them follows.
  EXPECT_LE(counts.conversions, 1);
  // The same sums in the same order.
  test::expect_same_results(before, after, test::random_inputs(before, 3), 0);
}

std::vector<std::string> image_models() {
  std::vector<std::string> names;
  for (const std::string& name : test::tiny_model_names()) {
    for (const char* family : {"resnet", "mobilenet", "unet", "convnext", "densenet"}) {
      if (name.rfind(family, 0) == 0) names.push_back(name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, LayoutModels, testing::ValuesIn(image_models()),
                         test::parameter_name);

TEST(ChooseLayouts, LeavesTheHostsOrderAlone) {
  const auto imported = test::import_tiny(image_models().front(), 1);
  ASSERT_TRUE(imported.ok());
  const ir::Graph graph = narrowed(*imported, false);
  EXPECT_EQ(count(graph).channels_last, 0);
  EXPECT_GT(count(graph).convolutions, 0);
}

}  // namespace
}  // namespace kiln
