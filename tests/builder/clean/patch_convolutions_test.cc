// Convolutions of patches of every rank keep their meaning, and nothing but the product and the
// movement in front of it is left of them.
#include "builder/clean/patch_convolutions.h"

#include <gtest/gtest.h>

#include <numeric>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

ValueId emit(Graph& graph, ir::Op op, std::vector<ValueId> inputs) {
  const auto node = graph.add_node("node", {}, std::move(op), std::move(inputs));
  EXPECT_TRUE(node.ok()) << node.error().message;
  return graph.result(*node);
}

struct PatchCase {
  const char* name;
  Shape image, kernel;  // spatial extents
  int64_t rows = 2, channels = 3, filters = 5;
  DType dtype = DType::kF32;
  bool bias = true;
  bool regroups = true;  // the spatial axes become one before channels go last
};

// A stem: the convolution, then tokens of its channels.
Graph stem(const PatchCase& one) {
  Graph graph;
  const auto input = [&](const char* name, Shape shape) {
    return graph.add_input(name, {one.dtype, std::move(shape)});
  };
  Shape x = {one.rows, one.channels}, w = {one.filters, one.channels};
  x.insert(x.end(), one.image.begin(), one.image.end());
  w.insert(w.end(), one.kernel.begin(), one.kernel.end());
  std::vector<ValueId> inputs = {input("x", x), input("w", w)};
  if (one.bias) inputs.push_back(input("b", {one.filters}));
  const Shape none(one.kernel.size(), 0), ones(one.kernel.size(), 1);
  ValueId y = emit(graph, ir::Conv{one.kernel, ones, none, none, 1}, inputs);
  if (one.regroups) {
    const int64_t patches = graph.type(y).elements() / one.rows / one.filters;
    y = emit(graph, ir::Reshape{{one.rows, one.filters, patches}}, {y});
  }
  std::vector<int64_t> perm(static_cast<size_t>(graph.type(y).rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  graph.mark_output(emit(graph, ir::Transpose{perm}, {y}));
  return graph;
}

// The stage of the pipeline that the rewrite belongs to, in as many rounds as it takes.
Graph cleaned(const Graph& before) {
  Graph graph = before;
  PassContext context;
  const auto passes = default_pipeline();
  const auto end = std::find_if(passes.begin(), passes.end(),
                                [](const Pass& pass) { return pass.stage != Pass::Stage::kClean; });
  const auto run =
      run_passes(graph, passes.first(static_cast<size_t>(end - passes.begin())), context);
  EXPECT_TRUE(run.ok()) << run.error().message;
  return graph;
}

// What depends on the product, and the product.
size_t nodes_from_product(const Graph& graph) {
  size_t count = 0;
  bool met = false;
  for (ir::NodeId id : graph.topological_order()) {
    EXPECT_FALSE(std::holds_alternative<ir::Conv>(graph.node(id).op));
    met = met || std::holds_alternative<ir::MatMul>(graph.node(id).op);
    count += met;
  }
  return count;
}

std::vector<PatchCase> cases() {
  return {
      {"line", {12}, {4}},
      {"line_with_rest", {13}, {5}},
      {"image", {8, 12}, {4, 4}},
      {"image_with_rest", {11, 14}, {4, 3}},
      {"image_in_rows", {6, 6}, {1, 6}},
      {"one_row", {14, 14}, {7, 7}, 1},
      {"volume", {4, 6, 4}, {2, 3, 2}},
      {"volume_with_rest", {5, 6, 7}, {2, 1, 3}},
      {"one_channel", {8, 8}, {2, 2}, 3, 1},
      {"seven_channels", {8, 8}, {2, 2}, 1, 7},
      {"without_bias", {8, 8}, {4, 4}, 2, 3, 5, DType::kF32, false},
      {"half", {12, 9}, {4, 4}, 2, 3, 5, DType::kF16},
      {"brain_half", {12, 9}, {4, 4}, 2, 3, 5, DType::kBF16},
      {"double", {12, 9}, {4, 4}, 2, 3, 5, DType::kF64},
      {"image_as_it_is", {8, 12}, {4, 4}, 2, 3, 5, DType::kF32, true, false},
      {"volume_as_it_is", {4, 6, 5}, {2, 3, 2}, 2, 3, 5, DType::kF32, true, false},
  };
}

class PatchConvolutions : public testing::TestWithParam<PatchCase> {};

TEST_P(PatchConvolutions, AreProductsOfTheirPatches) {
  const PatchCase& one = GetParam();
  const Graph before = stem(one);
  const Graph after = cleaned(before);
  // The bias, and a reshape where tokens keep their spatial axes.
  EXPECT_EQ(nodes_from_product(after), 1u + one.bias + !one.regroups);
  // Narrow types round once more between product and bias.
  const bool brain = one.dtype == DType::kBF16, half = one.dtype == DType::kF16;
  const double tolerance = brain ? 0.1 : half ? 0.02 : 1e-5;
  test::expect_same_results(before, after, test::random_inputs(before, 3), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Stems, PatchConvolutions, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln
