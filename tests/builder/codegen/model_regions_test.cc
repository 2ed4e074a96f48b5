// Every loop region that fusion forms in the exported models computes as a loop kernel what its
// nodes compute.
#include <gtest/gtest.h>

#include "builder/codegen/lower_loop.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/codegen/run_body.h"
#include "tests/builder/imported_model.h"

namespace kiln::codegen {
namespace {

void expect_lowered_is_same(const ir::Graph& body) {
  std::vector<Bytes> inputs;
  std::mt19937 random(5);
  for (const ir::ValueId input : body.inputs()) {
    // An index of -1 or 0 is in range of every axis.
    inputs.push_back(random_bytes(body.type(input), -1, 0, random));
  }
  const auto want = run_node_by_node(body, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message;
  const auto got = run_lowered(body, inputs);
  ASSERT_TRUE(got.ok()) << got.error().message << "\n" << ir::to_text(body);
  for (size_t o = 0; o < want->size(); ++o) {
    const DType dtype = body.type(body.outputs()[o]).dtype;
    EXPECT_EQ(difference(dtype, (*got)[o], (*want)[o], 1e-4), "") << ir::to_text(body);
  }
}

class ModelRegions : public testing::TestWithParam<std::string> {};

TEST_P(ModelRegions, LoopsComputeWhatTheirNodesDo) {
  auto graph = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  PassContext context;
  const auto run = run_passes(*graph, default_pipeline(), context);
  ASSERT_TRUE(run.ok()) << run.error().message;
  int loops = 0;
  for (const ir::NodeId id : graph->topological_order()) {
    const auto* region = std::get_if<ir::Region>(&graph->node(id).op);
    if (region == nullptr || region->kind != ir::Region::Kind::kLoop) continue;
    ++loops;
    expect_lowered_is_same(*region->body);
  }
  EXPECT_GT(loops, 0);
}

INSTANTIATE_TEST_SUITE_P(Tiny, ModelRegions, testing::ValuesIn(test::tiny_model_names()),
                         test::parameter_name);

}  // namespace
}  // namespace kiln::codegen
