#include "formats/onnx/schema.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

namespace kiln::onnx {
namespace {

TEST(FindSchema, GivesSignatureAndAttributes) {
  auto conv = find_schema("Conv", "", 17);
  ASSERT_TRUE(conv.ok()) << conv.error().message;
  EXPECT_EQ(conv->since_version, 11);
  EXPECT_FALSE(conv->deprecated);
  EXPECT_FALSE(conv->has_function_body);
  EXPECT_EQ(conv->min_inputs, 2);
  EXPECT_EQ(conv->max_inputs, 3);
  EXPECT_TRUE(conv->inputs.at(2).optional);
  ASSERT_EQ(conv->attributes.size(), 6u);
  EXPECT_EQ(conv->attributes[0].name, "auto_pad");
  EXPECT_EQ(std::get<std::string>(conv->attributes[0].default_value->value), "NOTSET");
  EXPECT_EQ(conv->attributes[2].name, "group");
  EXPECT_EQ(conv->attributes[2].kind, AttributeKind::kInt);
  EXPECT_EQ(std::get<int64_t>(conv->attributes[2].default_value->value), 1);
  EXPECT_EQ(conv->attributes[3].name, "kernel_shape");
  EXPECT_EQ(conv->attributes[3].default_value, std::nullopt);
}

TEST(FindSchema, VersionsFollowTheOperatorSet) {
  EXPECT_EQ(find_schema("Softmax", "", 12)->since_version, 11);
  EXPECT_EQ(find_schema("Softmax", "", 13)->since_version, 13);
  EXPECT_TRUE(find_schema("Upsample", "", 10)->deprecated);
  EXPECT_FALSE(find_schema("Upsample", "", 9)->deprecated);
}

TEST(FindSchema, VariadicInputsHaveNoMaximum) {
  auto concat = find_schema("Concat", "", 13);
  ASSERT_TRUE(concat.ok());
  EXPECT_EQ(concat->max_inputs, std::numeric_limits<int32_t>::max());
  EXPECT_TRUE(concat->inputs.at(0).variadic);
  EXPECT_TRUE(concat->attributes.at(0).required);
}

TEST(FindSchema, SaysWhatIsUnknown) {
  EXPECT_EQ(find_schema("Thing", "com.example", 1).error().message,
            "domain 'com.example' is not one of ONNX's");
  EXPECT_EQ(find_schema("NoSuchOp", "", 17).error().message,
            "domain 'ai.onnx' has no operator 'NoSuchOp'");
  EXPECT_EQ(find_schema("LayerNormalization", "", 16).error().message,
            "operator 'LayerNormalization' is not in opset 16 of domain 'ai.onnx'");
}

TEST(NewestOpset, KnowsOnnxDomainsAlone) {
  EXPECT_GE(newest_opset("").value(), 23);
  EXPECT_EQ(newest_opset("com.example"), std::nullopt);
}

std::vector<std::string> op_types(const Function& function) {
  std::vector<std::string> types;
  for (const Node& node : function.nodes) {
    if (node.op_type != "Constant") types.push_back(node.op_type);
  }
  return types;
}

ValueInfo type_of(DType dtype, std::vector<int64_t> shape) {
  ValueInfo info;
  info.dtype = dtype;
  info.shape.emplace();
  for (int64_t extent : shape) info.shape->push_back({extent, ""});
  return info;
}

TEST(FunctionBody, PrimitivesHaveNone) {
  auto body = function_body(Node{.op_type = "Conv", .inputs = {"x", "w"}, .outputs = {"y"}},
                            {{"", 17}}, {});
  ASSERT_TRUE(body.ok()) << body.error().message;
  EXPECT_FALSE(body->has_value());
}

TEST(FunctionBody, BodiesCarryTheSchemasDefaults) {
  const std::vector<std::optional<ValueInfo>> types = {type_of(DType::kF32, {2})};
  auto body = function_body(Node{.op_type = "ThresholdedRelu", .inputs = {"x"}, .outputs = {"y"}},
                            {{"", 22}}, types);
  ASSERT_TRUE(body.ok()) << body.error().message;
  ASSERT_TRUE(body->has_value());
  EXPECT_EQ((*body)->inputs, std::vector<std::string>{"X"});
  EXPECT_EQ((*body)->outputs, std::vector<std::string>{"Y"});
  ASSERT_EQ((*body)->defaults.size(), 1u);
  EXPECT_EQ((*body)->defaults[0].name, "alpha");
  EXPECT_EQ(std::get<float>((*body)->defaults[0].value), 1.0f);
  EXPECT_EQ(op_types(**body).back(), "Where");
}

// The body that ONNX's specification gives for Softmax: exp(x - max) / sum(exp(x - max)).
TEST(FunctionBody, BodiesMeanTheOpsetTheyWereWrittenFor) {
  const Node softmax{.op_type = "Softmax", .inputs = {"x"}, .outputs = {"y"}};
  const std::vector<std::optional<ValueInfo>> types = {type_of(DType::kF32, {2, 3})};
  const std::vector<std::string> expected = {"ReduceMax", "Sub", "Exp", "ReduceSum", "Div"};
  for (int64_t opset : {13, 17, 18, 21}) {
    auto body = function_body(softmax, {{"", opset}}, types);
    ASSERT_TRUE(body.ok()) << body.error().message;
    ASSERT_TRUE(body->has_value());
    EXPECT_EQ(op_types(**body), expected);
    // ReduceMax takes its axes as an input from 18 on, and as an attribute before.
    const int64_t meant = (*body)->opset_imports.at("");
    EXPECT_EQ(meant, opset < 18 ? 13 : 18);
    for (const Node& node : (*body)->nodes) {
      if (node.op_type != "ReduceMax") continue;
      EXPECT_EQ(node.inputs.size(), opset < 18 ? 1u : 2u);
    }
  }
}

TEST(FunctionBody, DependsOnTheInputTypesGiven) {
  const Node node{.op_type = "LayerNormalization", .inputs = {"x", "s"}, .outputs = {"y"}};
  const std::vector<std::optional<ValueInfo>> types = {type_of(DType::kF16, {2, 3}),
                                                       type_of(DType::kF16, {3})};
  auto body = function_body(node, {{"", 17}}, types);
  ASSERT_TRUE(body.ok()) << body.error().message;
  ASSERT_TRUE(body->has_value());
  EXPECT_EQ((*body)->inputs, (std::vector<std::string>{"X", "Scale", "B"}));
  EXPECT_EQ((*body)->outputs, (std::vector<std::string>{"Y", "Mean", "InvStdDev"}));
  // Without the types there is nothing to cast to.
  auto unknown = function_body(node, {{"", 17}}, {});
  ASSERT_TRUE(unknown.ok()) << unknown.error().message;
  EXPECT_FALSE(unknown->has_value());
}

TEST(FunctionBody, NeedsTheDomainImported) {
  auto body = function_body(Node{.op_type = "Softmax"}, {}, {});
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().message, "domain '' is not imported");
}

TEST(Schema, IsThreadSafe) {
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (const char* op : {"Conv", "Softmax", "Gemm", "Resize"}) {
        found += find_schema(op, "", 17).ok();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, 32);
}

}  // namespace
}  // namespace kiln::onnx
