#include "builder/ir/graph.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kiln::ir {
namespace {

const TensorType kRow{DType::kF32, {2, 3}};

SharedBytes floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return SharedBytes::take(std::move(bytes));
}

NodeId must(Result<NodeId> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : NodeId{0};
}

// y = (x + w) * (x + w), z = x + w
Graph diamond() {
  Graph graph;
  const ValueId x = graph.add_input("x", kRow);
  const ValueId w = graph.add_constant("w", {DType::kF32, {3}}, floats({1, 2, 3}));
  const NodeId add = must(graph.add_node("add", {"add_0"}, Pointwise{ScalarFn::kAdd}, {x, w}));
  const ValueId sum = graph.result(add);
  const NodeId mul = must(graph.add_node("mul", {"mul_0"}, Pointwise{ScalarFn::kMul}, {sum, sum}));
  graph.mark_output(graph.result(mul));
  graph.mark_output(sum);
  graph.set_output_name(0, "y");
  graph.set_output_name(1, "z");
  return graph;
}

TEST(Graph, KeepsUsesInStep) {
  Graph graph = diamond();
  EXPECT_TRUE(graph.verify().ok());
  const NodeId add{0}, mul{1};
  EXPECT_EQ(graph.value(graph.result(add)).uses.size(), 2u);
  graph.replace_uses(graph.result(add), graph.inputs()[0]);
  EXPECT_EQ(graph.outputs()[1], graph.inputs()[0]);
  EXPECT_EQ(graph.node(mul).inputs[1], graph.inputs()[0]);
  graph.erase(add);
  EXPECT_TRUE(graph.verify().ok());
  graph.compact();
  EXPECT_TRUE(graph.verify().ok());
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(graph.value_count(), 2u);  // x and the product; w is unused
}

TEST(Graph, VerifyRefusesAnOutputOfAnErasedNode) {
  Graph graph = diamond();
  graph.erase(NodeId{1});
  EXPECT_FALSE(graph.verify().ok());
}

TEST(Graph, FingerprintIgnoresNamesAndSeesContents) {
  Graph graph = diamond(), renamed = diamond();
  renamed.set_value_name(renamed.inputs()[0], "other");
  EXPECT_EQ(graph.fingerprint(), renamed.fingerprint());
  Graph changed;
  const ValueId x = changed.add_input("x", kRow);
  const ValueId w = changed.add_constant("w", {DType::kF32, {3}}, floats({1, 2, 4}));
  const ValueId sum =
      changed.result(must(changed.add_node("add", {}, Pointwise{ScalarFn::kAdd}, {x, w})));
  changed.mark_output(
      changed.result(must(changed.add_node("mul", {}, Pointwise{ScalarFn::kMul}, {sum, sum}))));
  changed.mark_output(sum);
  EXPECT_NE(graph.fingerprint(), changed.fingerprint());
}

TEST(Graph, RejectsTypesWithAMessage) {
  Graph graph;
  const ValueId a = graph.add_input("a", kRow);
  const ValueId b = graph.add_input("b", {DType::kF32, {4, 3}});
  const auto node = graph.add_node("mm", {}, MatMul{}, {a, b});
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().message,
            "node 'mm' (f32[2x3], f32[4x3]): matmul: inner extents are 3 (f32[2x3]) and 4 "
            "(f32[4x3]), expected equal");
}

TEST(GraphText, RoundTrips) {
  const std::string text = to_text(diamond());
  EXPECT_EQ(text,
            "graph {\n"
            "  input %0 : f32[2x3] \"x\"\n"
            "  const %1 : f32[3] \"w\" = 1, 2, 3\n"
            "  %2 = add(%0, %1) : f32[2x3] ; \"add\" from \"add_0\"\n"
            "  %3 = mul(%2, %2) : f32[2x3] ; \"mul\" from \"mul_0\"\n"
            "  output %3 \"y\"\n"
            "  output %2 \"z\"\n"
            "}\n");
  const auto parsed = parse_text(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->fingerprint(), diamond().fingerprint());
}

TEST(GraphText, RoundTripsEveryKindOfNode) {
  const std::string text =
      "graph {\n"
      "  input %0 : bool[] \"c\"\n"
      "  input %1 : f32[2x3] \"x\"\n"
      "  const %2 : f16[2] \"h\" = hex 003c0040\n"
      "  const %3 : f32[20] \"s\" = splat -0\n"
      "  const %4 : i64[2] \"n\" = -1, 5\n"
      "  %5 = if(%0, %1) : f32[2x3] \"y\" ; \"if\" {\n"
      "    input %0 : f32[2x3] \"a\"\n"
      "    output %0 \"a\"\n"
      "  } {\n"
      "    input %0 : f32[2x3] \"a\"\n"
      "    %1 = transpose{perm=[1, 0]}(%0) : f32[3x2] ; \"t\"\n"
      "    %2 = reshape{shape=[2, 3]}(%1) : f32[2x3] ; \"r\"\n"
      "    output %2 \"b\"\n"
      "  }\n"
      "  %6 = region{kind=\"loop\", origins=[\"a\", \"b\"], rule=\"pointwise\"}(%5) : f32[2x3] ; "
      "\"q\\\"uote\" {\n"
      "    input %0 : f32[2x3] \"a\"\n"
      "    %1 = exp(%0) : f32[2x3] ; \"e\"\n"
      "    output %1 \"\"\n"
      "  }\n"
      "  output %6 \"y\"\n"
      "}\n";
  const auto parsed = parse_text(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(to_text(*parsed, true), text);
}

TEST(GraphText, NamesTheLineOfAFault) {
  const auto parsed = parse_text("graph {\n  input %0 : f32[2] \"x\"\n  output %1 \"y\"\n}\n");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("line 3: %1 is not defined yet"), std::string::npos)
      << parsed.error().message;
}

TEST(Extract, MovesANodeAndInlineBringsItBack) {
  const Graph graph = diamond();
  const NodeId nodes[] = {NodeId{1}};
  const ValueId outputs[] = {graph.result(NodeId{1})};
  const Extracted part = extract(graph, nodes, outputs);
  EXPECT_EQ(part.inputs, std::vector<ValueId>{graph.result(NodeId{0})});
  EXPECT_TRUE(part.graph.verify().ok());
  Graph target;
  const ValueId x = target.add_input("x", kRow);
  const auto made = inline_graph(target, part.graph, std::span(&x, 1));
  target.mark_output(made[0]);
  EXPECT_TRUE(target.verify().ok());
  EXPECT_EQ(target.node_count(), 1u);
}

}  // namespace
}  // namespace kiln::ir
