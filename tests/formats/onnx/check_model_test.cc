#include <gtest/gtest.h>

#include "tests/formats/onnx/proto_writer.h"

namespace kiln::onnx::testing {
namespace {

TEST(CheckNames, RefusesControlCharactersAndBadUtf8) {
  for (const char* bad : {"a\nb",
                          "a\xff"
                          "b",
                          "a\xc0\x80", "a\xed\xa0\x80", "a\xe2\x82"}) {
    const std::string error =
        parse_error(model(graph({node("n", "Relu", {"x"}, {bad})}, {"x"}, {"x"})));
    EXPECT_NE(error.find("value name 'a...' has byte 0x"), std::string::npos) << error;
    EXPECT_NE(error.find("at offset 1, expected UTF-8"), std::string::npos) << error;
  }
}

TEST(CheckNames, TakesUtf8) {
  EXPECT_EQ(parse_error(model(graph({node("n", "Relu", {"x"}, {"größe→😀"})}, {"x"}, {"x"}))), "");
}

TEST(CheckVersions, RefusesIrVersionZero) {
  const Message m =
      Message().message(kModelOpset, opset("", 17)).message(kModelGraph, graph({}, {}, {}));
  EXPECT_EQ(parse_error(m), "ir version is 0, expected 1 or more");
}

TEST(CheckVersions, RefusesTwoVersionsOfADomain) {
  const Message m = model(graph({}, {"x"}, {"x"})).message(kModelOpset, opset("ai.onnx", 13));
  EXPECT_EQ(parse_error(m),
            "domain '' is imported at opset 17 and at opset 13, expected one version");
}

TEST(CheckVersions, RefusesADomainThatIsNotImported) {
  const Message n = node("n", "Thing", {"x"}, {"y"}).text(kNodeDomain, "com.example");
  EXPECT_EQ(parse_error(model(graph({n}, {"x"}, {"y"}))),
            "node 'n' (com.example::Thing): domain 'com.example' is used and not among the opset "
            "imports");
}

TEST(CheckVersions, LongNameOfTheDefaultDomainIsTheShortOne) {
  const Message n = node("n", "Relu", {"x"}, {"y"}).text(kNodeDomain, "ai.onnx");
  auto result = parse_model(model(graph({n}, {"x"}, {"y"})).span());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->graph.nodes[0].domain, "");
}

TEST(CheckGraphs, RefusesNodesOutOfOrder) {
  const Message a = node("a", "Relu", {"t"}, {"y"}), b = node("b", "Relu", {"x"}, {"t"});
  EXPECT_EQ(parse_error(model(graph({a, b}, {"x"}, {"y"}))),
            "node 'a' (Relu): input 't' is made later, by node 'b' (Relu); expected nodes in "
            "topological order without cycles");
}

TEST(CheckGraphs, NamelessNodesAreNamedByTheirOutput) {
  EXPECT_EQ(parse_error(model(graph({node("", "Relu", {"t"}, {"y"})}, {"x"}, {"y"}))),
            "node making 'y' (Relu): input 't' is made by no node, input or initializer");
}

TEST(CheckGraphs, RefusesRepeatedInputsInitializersAndOutputs) {
  EXPECT_EQ(parse_error(model(graph({}, {"x", "x"}, {"x"}))), "input 'x' is listed twice");
  EXPECT_EQ(parse_error(model(graph({}, {"x"}, {"x", "x"}))), "output 'x' is listed twice");
  const Message w = tensor("w", 1, {1}).text(kRawData, raw<float>({1}));
  EXPECT_EQ(
      parse_error(model(
          graph({}, {"x"}, {"x"}).message(kGraphInitializer, w).message(kGraphInitializer, w))),
      "initializer 'w' is listed twice");
}

TEST(CheckGraphs, AnInitializerMayBeAnInputsDefault) {
  const Message x = tensor("x", 1, {2}).text(kRawData, raw<float>({1, 2}));
  EXPECT_EQ(parse_error(model(graph({}, {"x"}, {"x"}).message(kGraphInitializer, x))), "");
}

// An If whose two branches are `branch`.
Message if_node(const Message& branch) {
  return node("if", "If", {"c"}, {"y"})
      .message(kNodeAttribute, graph_attribute("then_branch", branch))
      .message(kNodeAttribute, graph_attribute("else_branch", branch));
}

TEST(CheckGraphs, SubgraphsSeeOuterValues) {
  const Message branch = graph({node("r", "Relu", {"x"}, {"b"})}, {}, {"b"});
  EXPECT_EQ(parse_error(model(graph({if_node(branch)}, {"x", "c"}, {"y"}))), "");
}

TEST(CheckGraphs, OuterGraphsDoNotSeeInnerValues) {
  const Message branch = graph({node("r", "Relu", {"x"}, {"b"})}, {}, {"b"});
  EXPECT_EQ(parse_error(model(graph({if_node(branch), node("late", "Relu", {"b"}, {"z"})},
                                    {"x", "c"}, {"y", "z"}))),
            "node 'late' (Relu): input 'b' is made by no node, input or initializer");
}

TEST(CheckGraphs, SubgraphsMayNotRemakeOuterValues) {
  const Message branch = graph({node("r", "Relu", {"x"}, {"c"})}, {}, {"c"});
  EXPECT_EQ(parse_error(model(graph({if_node(branch)}, {"x", "c"}, {"y"}))),
            "node 'if' (If): node 'r' (Relu): output 'c' is already made by an input or "
            "initializer, expected each name to be made once");
}

Message local_call(std::string_view op, std::string_view from, std::string_view to) {
  return node("", op, {from}, {to}).text(kNodeDomain, "local");
}
Message model_with(std::initializer_list<Message> functions, const Message& call) {
  Message m = model(graph({call}, {"x"}, {"y"})).message(kModelOpset, opset("local", 1));
  for (const Message& f : functions) m.message(kModelFunction, f);
  return m;
}

TEST(CheckFunctions, CallsAreDecoded) {
  const Message f = function("Twice", {"a"}, {"c"},
                             {node("r", "Elu", {"a"}, {"b"})
                                  .message(kNodeAttribute, reference_attribute("alpha", "slope")),
                              node("s", "Relu", {"b"}, {"c"})})
                        .message(11, float_attribute("slope", 0.5f));
  auto result = parse_model(model_with({f}, local_call("Twice", "x", "y")).span());
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->functions.size(), 1u);
  const Function& twice = result->functions[0];
  EXPECT_EQ(twice.name, "Twice");
  EXPECT_EQ(twice.domain, "local");
  EXPECT_EQ(twice.defaults.at(0).name, "slope");
  EXPECT_EQ(std::get<float>(twice.defaults[0].value), 0.5f);
  EXPECT_EQ(twice.nodes.at(0).attributes.at(0).reference, "slope");
  EXPECT_EQ(twice.opset_imports.at(""), 17);
}

TEST(CheckFunctions, RefusesMutualRecursion) {
  const Message a = function("A", {"i"}, {"o"}, {local_call("B", "i", "o")});
  const Message b = function("B", {"i"}, {"o"}, {local_call("A", "i", "o")});
  const Message top = function("Top", {"i"}, {"o"}, {local_call("A", "i", "o")});
  const std::string error = parse_error(model_with({top, a, b}, local_call("Top", "x", "y")));
  EXPECT_TRUE(error == "function 'A' calls itself, directly or through others" ||
              error == "function 'B' calls itself, directly or through others")
      << error;
}

TEST(CheckFunctions, RefusesCallsThatMultiply) {
  // F0 calls F1 twice, which calls F2 twice, ...: 2^40 nodes from 40 functions.
  Message m = model(graph({local_call("F0", "x", "y")}, {"x"}, {"y"}))
                  .message(kModelOpset, opset("local", 1));
  for (int i = 0; i < 40; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    m.message(kModelFunction, function("F" + std::to_string(i), {"i"}, {"o"},
                                       {local_call(next, "i", "t"), local_call(next, "t", "o")}));
  }
  m.message(kModelFunction, function("F40", {"i"}, {"o"}, {node("", "Relu", {"i"}, {"o"})}));
  const std::string error = parse_error(m);
  EXPECT_NE(error.find("has more than 2000000 nodes once its function calls are inlined"),
            std::string::npos)
      << error;
}

TEST(CheckFunctions, RefusesAReferenceToNoAttribute) {
  const Message body =
      node("r", "Elu", {"i"}, {"o"}).message(kNodeAttribute, reference_attribute("alpha", "slope"));
  EXPECT_EQ(
      parse_error(model_with({function("F", {"i"}, {"o"}, {body})}, local_call("F", "x", "y"))),
      "function 'F': node 'r' (Elu): attribute 'alpha' refers to attribute 'slope', which "
      "the function does not declare");
  const Message outside =
      node("r", "Elu", {"x"}, {"y"}).message(kNodeAttribute, reference_attribute("alpha", "slope"));
  EXPECT_EQ(parse_error(model(graph({outside}, {"x"}, {"y"}))),
            "node 'r' (Elu): attribute 'alpha' refers to attribute 'slope', which only a "
            "function's body may do");
}

TEST(CheckFunctions, RefusesAFunctionDefinedTwice) {
  const Message f = function("F", {"i"}, {"o"}, {node("", "Relu", {"i"}, {"o"})});
  EXPECT_EQ(parse_error(model_with({f, f}, local_call("F", "x", "y"))),
            "function 'F' of domain 'local' is defined twice");
}

TEST(CheckFunctions, RefusesABodyThatReadsTheGraph) {
  const Message f = function("F", {"i"}, {"o"}, {node("r", "Relu", {"x"}, {"o"})});
  EXPECT_EQ(parse_error(model_with({f}, local_call("F", "x", "y"))),
            "function 'F': node 'r' (Relu): input 'x' is made by no node, input or initializer");
}

TEST(CheckNodes, RefusesTooManyInputsOfACall) {
  const Message f = function("F", {"i"}, {"o"}, {node("", "Relu", {"i"}, {"o"})});
  const Message call = node("call", "F", {"x", "x"}, {"y"}).text(kNodeDomain, "local");
  EXPECT_EQ(parse_error(model_with({f}, call)),
            "node 'call' (local::F): has 2 inputs, expected 0 to 1");
}

TEST(CheckNodes, ComparesWithTheSchema) {
  EXPECT_EQ(parse_error(model(graph({node("n", "Add", {"x"}, {"y"})}, {"x"}, {"y"}))),
            "node 'n' (Add): has 1 inputs, expected 2");
  EXPECT_EQ(parse_error(model(graph({node("n", "Add", {"x", ""}, {"y"})}, {"x"}, {"y"}))),
            "node 'n' (Add): input 1 ('B') is left out, and is not optional");
  EXPECT_EQ(parse_error(model(graph({node("n", "Relu", {"x"}, {"y", "z"})}, {"x"}, {"y"}))),
            "node 'n' (Relu): has 2 outputs, expected 1");
  EXPECT_EQ(parse_error(model(graph(
                {node("n", "Elu", {"x"}, {"y"}).message(kNodeAttribute, int_attribute("alpha", 1))},
                {"x"}, {"y"}))),
            "node 'n' (Elu): attribute 'alpha' is of type int, expected float");
  EXPECT_EQ(
      parse_error(model(graph(
          {node("n", "Elu", {"x"}, {"y"}).message(kNodeAttribute, float_attribute("beta", 1))},
          {"x"}, {"y"}))),
      "node 'n' (Elu): attribute 'beta' is unknown to the operator of opset 6");
}

TEST(CheckNodes, RefusesAnAttributeGivenTwice) {
  const Message n = node("n", "Elu", {"x"}, {"y"})
                        .message(kNodeAttribute, float_attribute("alpha", 1))
                        .message(kNodeAttribute, float_attribute("alpha", 2));
  EXPECT_EQ(parse_error(model(graph({n}, {"x"}, {"y"}))),
            "node 'n' (Elu): attribute 'alpha' is given twice");
}

TEST(CheckNodes, RefusesALoopWhoseBodyDoesNotFit) {
  const Message body =
      graph({node("i", "Identity", {"cond"}, {"cond_out"})}, {"iteration", "cond"}, {"cond_out"});
  const Message loop = node("loop", "Loop", {"x", "x", "x"}, {"y"})
                           .message(kNodeAttribute, graph_attribute("body", body));
  EXPECT_EQ(parse_error(model(graph({loop}, {"x"}, {"y"}))),
            "node 'loop' (Loop): body has 2 inputs, expected 3");
}

TEST(CheckNodes, LeavesUnknownOperatorsToTheCaller) {
  EXPECT_EQ(parse_error(model(graph({node("n", "NoSuchOp", {"x"}, {"y"})}, {"x"}, {"y"}))), "");
}

TEST(DecodeAttribute, RefusesAValueInAnotherField) {
  const Message n =
      node("n", "Elu", {"x"}, {"y"})
          .message(kNodeAttribute, Message().text(1, "alpha").integer(3, 1).integer(20, 1));
  EXPECT_EQ(parse_error(model(graph({n}, {"x"}, {"y"}))),
            "node 'n' (Elu): attribute 'alpha': has type float and a value in field i");
  const Message untyped = node("n", "Elu", {"x"}, {"y"})
                              .message(kNodeAttribute, Message().text(1, "alpha").fixed32(2, 1));
  EXPECT_EQ(parse_error(model(graph({untyped}, {"x"}, {"y"}))),
            "node 'n' (Elu): attribute 'alpha': has no type that we know, expected one of ONNX's");
}

}  // namespace
}  // namespace kiln::onnx::testing
