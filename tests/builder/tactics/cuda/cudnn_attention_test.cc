// The problems that are made of attention bodies, and the loops behind them, mean what the bodies
// mean.
#include "builder/tactics/cuda/cudnn_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/finish_lowering.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/random_tensors.h"
#include "tests/builder/tactics/cuda/run_problem.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;
using test::emit;
using test::input_number;

// q, k and v in one tensor of tokens, or as they are; heads joined again behind it.
Graph attention_body(bool packed, bool causal, int64_t groups, const Shape& mask,
                     bool masked_row_zero = false) {
  constexpr int64_t kBatch = 2, kHeads = 4, kTokens = 6, kDepth = 8;
  const DType dtype = DType::kF16;
  Graph graph;
  std::vector<ValueId> inputs;
  const int64_t width = kHeads * kDepth;
  if (packed) {
    const ValueId all = graph.add_input("qkv", {dtype, {kBatch, kTokens, 3 * width}});
    for (int64_t i = 0; i < 3; ++i) {
      const ValueId part =
          emit(graph, ir::Slice{{0, 0, i * width}, {kBatch, kTokens, width}, {1, 1, 1}}, {all});
      const ValueId heads = emit(graph, ir::Reshape{{kBatch, kTokens, kHeads, kDepth}}, {part});
      inputs.push_back(emit(graph, ir::Transpose{{0, 2, 1, 3}}, {heads}));
    }
  } else {
    inputs = {graph.add_input("q", {dtype, {kBatch, kHeads, kTokens, kDepth}}),
              graph.add_input("k", {dtype, {kBatch, groups, kTokens, kDepth}}),
              graph.add_input("v", {dtype, {kBatch, groups, kTokens, kDepth}})};
  }
  if (!mask.empty()) inputs.push_back(graph.add_input("mask", {dtype, mask}));
  ValueId y = emit(graph, ir::Attention{0.3, causal, 0.0, masked_row_zero}, inputs);
  if (packed) {
    y = emit(graph, ir::Transpose{{0, 2, 1, 3}}, {y});
    y = emit(graph, ir::Reshape{{kBatch, kTokens, width}}, {y});
  }
  graph.mark_output(y);
  return graph;
}

struct Case {
  bool packed, causal;
  int64_t groups;
  Shape mask;
};

// What the problem alone makes of the inputs.
std::vector<double> run_problem(const Graph& body, const AttentionProblem& made,
                                const std::vector<HostTensor>& inputs) {
  test::ProblemRun run(made.problem);
  for (const PlacedOperand& operand : made.inputs) {
    auto stored = test::to_doubles(inputs[input_number(body, operand.value)]);
    stored.erase(stored.begin(), stored.begin() + operand.offset);
    run.set(operand.number, std::move(stored));
  }
  run.run();
  return run.data(made.output);
}

// Inputs hold values of f16 in both, and sums are f32 or wider in both.
void expect_meaning(const Graph& body, const std::vector<HostTensor>& inputs,
                    const std::vector<double>& got) {
  const auto expected = run_reference(body, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const auto want = test::to_doubles((*expected)[0]);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 4e-3 * (1 + std::abs(want[i]))) << "element " << i;
  }
}

TEST(AttentionProblem, MeansWhatTheBodyMeans) {
  for (const Case& one :
       {Case{false, false, 4, {}}, Case{true, false, 4, {}}, Case{true, true, 4, {}},
        Case{false, true, 2, {}}, Case{true, false, 4, {2, 1, 6, 6}},
        Case{true, false, 4, {2, 1, 1, 6}}, Case{false, false, 4, {6, 6}}}) {
    const Graph body = attention_body(one.packed, one.causal, one.groups, one.mask);
    const auto made = attention_problem(body);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto inputs = test::random_inputs(body, 5);
    expect_meaning(body, inputs, run_problem(body, *made, inputs));
  }
}

HostTensor in_dtype(DType dtype, const Shape& shape, const std::vector<double>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  const HostTensor wide{{DType::kF64, shape}, SharedBytes::take({bytes.begin(), bytes.end()})};
  const TensorType type{dtype, shape};
  return run_reference_op(ir::Cast{dtype, true}, {&wide, 1}, {&type, 1}).value()[0];
}

codegen::Bytes bytes_of(const HostTensor& tensor) {
  return {tensor.bytes.data(), tensor.bytes.data() + tensor.bytes.size()};
}

// Every third row sees nothing, the others nothing of the first columns.
HostTensor partly_hidden(HostTensor mask) {
  auto numbers = test::to_doubles(mask);
  const auto columns = static_cast<size_t>(mask.type.shape.back());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i / columns % 3 != 0 && i % columns > 1) continue;
    numbers[i] = -std::numeric_limits<double>::infinity();
  }
  return in_dtype(mask.type.dtype, mask.type.shape, numbers);
}

// What the problem and the loops behind it make of the inputs.
std::vector<double> with_rows_zeroed(const Graph& body, const AttentionProblem& made,
                                     const std::vector<HostTensor>& inputs) {
  const TensorType& type = body.type(body.outputs()[0]);
  const HostTensor result = in_dtype(type.dtype, type.shape, run_problem(body, made, inputs));
  std::vector<codegen::Bytes> masks;
  for (const ValueId input : made.masked_rows->inputs) {
    masks.push_back(bytes_of(inputs[input_number(body, input)]));
  }
  for (const HostTensor& one : made.masked_rows->constants) masks.push_back(bytes_of(one));
  const auto kept = codegen::interpret(made.masked_rows->find, masks);
  EXPECT_TRUE(kept.ok()) << kept.error().message;
  const auto zeroed = codegen::interpret(made.masked_rows->zero, {bytes_of(result), (*kept)[0]});
  EXPECT_TRUE(zeroed.ok()) << zeroed.error().message;
  return codegen::values_of(type.dtype, (*zeroed)[0]);
}

TEST(AttentionProblem, LoopsBehindItZeroMaskedRows) {
  for (const Case& one : {Case{true, false, 4, {2, 1, 6, 6}}, Case{true, true, 4, {2, 1, 6, 6}},
                          Case{true, false, 4, {2, 1, 1, 6}}, Case{false, true, 2, {1, 4, 6, 6}},
                          Case{false, false, 4, {6, 6}}, Case{true, true, 4, {6, 1}}}) {
    SCOPED_TRACE(to_string(TensorType{DType::kF16, one.mask}));
    const Graph body = attention_body(one.packed, one.causal, one.groups, one.mask, true);
    const auto made = attention_problem(body);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(made->masked_rows);
    auto inputs = test::random_inputs(body, 5);
    inputs.back() = partly_hidden(inputs.back());
    const auto zeroed = with_rows_zeroed(body, *made, inputs);
    EXPECT_NE(std::ranges::count(zeroed, 0.0), 0);
    expect_meaning(body, inputs, zeroed);
  }
  // Without a mask no row is masked throughout.
  const auto maskless = attention_problem(attention_body(true, true, 4, {}, true));
  ASSERT_TRUE(maskless.ok()) << maskless.error().message;
  EXPECT_FALSE(maskless->masked_rows);
}

TEST(AttentionProblem, ZerosAreTwoLaunchesBehindTheCall) {
  if (const auto version = codegen::compiler_version(); !version.ok()) {
    GTEST_SKIP() << version.error().message;
  }
  CudaTools tools;
  tools.compiler = std::make_shared<KernelCompiler>(90);
  const DeviceInfo device;
  for (const bool causal : {false, true}) {
    const ir::Region region{
        ir::Region::Kind::kAttention,
        std::make_shared<Graph>(attention_body(true, causal, 4, {2, 1, 6, 6}, true)),
        {},
        ""};
    const Graph& body = *region.body;
    const auto made = attention_problem(body);
    ASSERT_TRUE(made.ok()) << made.error().message;
    TacticQuery query{region, {}, {}, {}, device, {}, &tools};
    for (ValueId input : body.inputs()) query.inputs.push_back(body.type(input));
    query.outputs = {body.type(body.outputs()[0])};
    query.constants.resize(query.inputs.size());
    Lowered lowered;
    add_call_and_zeros({}, body, *made->masked_rows, lowered);
    const auto finished = finish_lowering(query, lowered);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    ASSERT_EQ(lowered.steps.size(), 3u);
    const auto& call = std::get<LibraryCall>(lowered.steps[0]);
    const auto& find = std::get<LocalLaunch>(lowered.steps[1]);
    const auto& zero = std::get<LocalLaunch>(lowered.steps[2]);
    EXPECT_EQ(find.inputs[0], (LocalBuffer{LocalBuffer::Kind::kInput, 1}));
    EXPECT_EQ(find.inputs.size(), causal ? 3u : 1u);
    EXPECT_EQ(zero.inputs, (std::vector{call.outputs[0], find.outputs[0]}));
    EXPECT_EQ(zero.outputs[0], (LocalBuffer{LocalBuffer::Kind::kOutput, 0}));
    EXPECT_EQ(lowered.temporaries[call.outputs[0].index], query.outputs[0]);
    EXPECT_EQ(lowered.temporaries[find.outputs[0].index].shape, (Shape{2, 1, 6, 1}));
  }
}

TEST(AttentionProblem, SaysWhyARegionIsNone) {
  Graph other;
  other.mark_output(other.add_input("x", {DType::kF16, {2}}));
  EXPECT_EQ(attention_problem(other).error().message, "the region is no attention");
  Graph masked;
  const ValueId x = masked.add_input("x", {DType::kF16, {1, 1, 2, 8}});
  const ValueId mask = masked.add_input("mask", {DType::kBool, {1, 1, 2, 2}});
  masked.mark_output(emit(masked, ir::Attention{1, false, 0, false}, {x, x, x, mask}));
  EXPECT_EQ(attention_problem(masked).error().message, "the mask is of another type than q");
}

}  // namespace
}  // namespace kiln
