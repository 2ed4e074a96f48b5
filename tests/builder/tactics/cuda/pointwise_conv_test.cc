// Convolutions of single cells as products: what they become gives the same results, and what is
// none says why.
#include "builder/tactics/cuda/pointwise_conv.h"

#include <gtest/gtest.h>

#include <sstream>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/pointwise_conv_provider.h"
#include "tests/builder/imported_model.h"
#include "tests/builder/precision/narrowed.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

// The bytes of `tensor` in another shape.
HostTensor reshaped(const HostTensor& tensor, const Shape& shape) {
  return {{tensor.type.dtype, shape}, tensor.bytes};
}

void expect_same(const ir::Region& region, const ir::Region& product) {
  const auto inputs = test::random_inputs(*region.body, 9);
  std::vector<HostTensor> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = product.body->type(product.body->inputs()[i]);
    ASSERT_EQ(type.elements(), inputs[i].type.elements());
    ASSERT_EQ(type.dtype, inputs[i].type.dtype);
    rows.push_back(reshaped(inputs[i], type.shape));
  }
  const auto want = run_reference(*region.body, inputs), found = run_reference(*product.body, rows);
  ASSERT_TRUE(want.ok()) << want.error().message;
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto a = test::to_doubles((*want)[0]), b = test::to_doubles((*found)[0]);
  ASSERT_EQ(a.size(), b.size());
  // Rounded to f16 between the steps, in another order of sums.
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 4e-3 * (1 + std::abs(a[i])));
}

class PointwiseConvModels : public testing::TestWithParam<std::string> {};

TEST_P(PointwiseConvModels, ProductsGiveTheSameResults) {
  const auto imported = test::import_tiny(GetParam(), 3);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const ir::Graph graph = test::narrowed(*imported, true);
  int single = 0, products = 0;
  for (ir::NodeId id : graph.topological_order()) {
    const auto& region = std::get<ir::Region>(graph.node(id).op);
    for (ir::NodeId inner : region.body->topological_order()) {
      const auto* conv = std::get_if<ir::Conv>(&region.body->node(inner).op);
      if (!conv || conv->groups != 1 || conv->strides != std::vector<int64_t>{1, 1}) continue;
      const Shape& w = region.body->type(region.body->node(inner).inputs[1]).shape;
      single += w[2] == 1 && w[3] == 1;
    }
    const auto product = as_product(region);
    if (!product.ok()) continue;
    SCOPED_TRACE(graph.node(id).name);
    products += 1;
    expect_same(region, *product);
  }
  EXPECT_GT(single, 0);
  EXPECT_EQ(products, single);
}

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const std::string& name : test::tiny_model_names()) {
    for (const char* family : {"resnet_", "mobilenet", "densenet"}) {
      if (name.starts_with(family)) names.push_back(name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tiny, PointwiseConvModels, testing::ValuesIn(models()),
                         test::parameter_name);

// conv + residual, channels last.
ir::Region region(const std::string& w, const std::string& strides, bool last = true) {
  const std::string x = last ? "2x3x4x16" : "2x16x3x4", y = strides == "1, 1" ? "3x4" : "2x2";
  std::istringstream lines(
      "graph {\n  input %0 : f16[" + x + "] \"x\"\n  input %1 : f16[" + w + "] \"w\"\n" +
      "  input %2 : f16[2x" + y + "x8] \"residual\"\n" +
      (last ? "  %3 = transpose{perm=[0, 3, 1, 2]}(%0) : f16[2x16x3x4]\n"
            : "  %3 = tanh(%0) : f16[2x16x3x4]\n") +
      "  %4 = conv{dilations=[1, 1], groups=1, pads_begin=[0, 0], pads_end=[0, 0], strides=[" +
      strides + "]}(%3, %1) : f16[2x8x" + y + "]\n" +
      "  %5 = transpose{perm=[0, 3, 1, 2]}(%2) : f16[2x8x" + y + "]\n" +
      "  %6 = add(%4, %5) : f16[2x8x" + y + "]\n  %7 = transpose{perm=[0, 2, 3, 1]}(%6) : f16[2x" +
      y + "x8]\n  output %7 \"y\"\n}");
  std::string named;
  for (std::string line; std::getline(lines, line);) {
    named += line + (line.starts_with("  %") ? " ; \"n\"\n" : "\n");
  }
  auto body = ir::parse_text(named);
  EXPECT_TRUE(body.ok()) << body.error().message;
  return {ir::Region::Kind::kConvolution, std::make_shared<ir::Graph>(*std::move(body)), {}, ""};
}

std::string refusal(const ir::Region& one) {
  const auto product = as_product(one);
  return product.ok() ? "" : product.error().message;
}

TEST(PointwiseConv, HasARowForEveryCell) {
  const auto product = as_product(region("8x16x1x1", "1, 1"));
  ASSERT_TRUE(product.ok()) << product.error().message;
  const ir::Graph& body = *product->body;
  EXPECT_EQ(product->kind, ir::Region::Kind::kContraction);
  EXPECT_EQ(body.type(body.inputs()[0]).shape, (Shape{24, 16}));
  EXPECT_EQ(body.type(body.inputs()[1]).shape, (Shape{8, 16}));
  EXPECT_EQ(body.type(body.inputs()[2]).shape, (Shape{24, 8}));
  EXPECT_EQ(body.type(body.outputs()[0]).shape, (Shape{24, 8}));
}

TEST(PointwiseConv, SaysWhatItDoesNotTake) {
  EXPECT_EQ(refusal(region("8x16x1x1", "1, 1")), "");
  EXPECT_EQ(refusal(region("8x16x1x1", "2, 2")), "its windows are no single cells");
  EXPECT_NE(refusal(region("8x16x1x1", "1, 1", false)), "");
  ir::Region other = region("8x16x1x1", "1, 1");
  other.kind = ir::Region::Kind::kLoop;
  EXPECT_EQ(refusal(other), "it is no convolution");
}

TEST(PointwiseConv, OneLaunchOfAKernelForFewRows) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  CudaTools tools;
  tools.compiler = std::make_shared<KernelCompiler>(90);
  DeviceInfo device;
  device.multiprocessors = 132;
  device.compute_capability = 90;
  const ir::Region one = region("8x16x1x1", "1, 1");  // 24 rows
  TacticQuery query{one, {}, {}, {}, device, {}, &tools};
  for (ir::ValueId id : one.body->inputs()) query.inputs.push_back(one.body->type(id));
  for (ir::ValueId id : one.body->outputs()) query.outputs.push_back(one.body->type(id));
  query.constants.resize(3);
  std::string why;
  const auto tactics = pointwise_conv_candidates(query, why);
  ASSERT_FALSE(tactics.empty()) << why;
  ASSERT_TRUE(tactics[0].key.starts_with("few-rows:")) << tactics[0].key;
  const auto lowered = pointwise_conv_lower(query, tactics[0]);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  ASSERT_EQ(lowered->steps.size(), 1u);
  const auto& launch = std::get<LocalLaunch>(lowered->steps[0]);
  using Kind = LocalBuffer::Kind;
  EXPECT_EQ(launch.inputs,
            (std::vector<LocalBuffer>{{Kind::kInput, 0}, {Kind::kInput, 1}, {Kind::kInput, 2}}));
  EXPECT_FALSE(pointwise_conv_lower(query, {"fastest:possible"}).ok());
  EXPECT_FALSE(pointwise_conv_lower(query, {"few-rows"}).ok());
}

}  // namespace
}  // namespace kiln
