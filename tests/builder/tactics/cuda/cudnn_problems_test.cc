// The problems that are made of convolution bodies mean what the bodies mean.
#include <gtest/gtest.h>

#include "builder/tactics/cuda/cudnn_conv.h"
#include "builder/tactics/cuda/widen_channels.h"
#include "engine/host_kernels.h"
#include "tests/builder/random_tensors.h"
#include "tests/builder/tactics/cuda/run_problem.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;
using test::emit;
using test::input_number;

// Inputs of f16 hold values of f16 in both, and sums are f32 or wider in both.
void expect_meaning(const Graph& body, const ConvProblem& made, double tolerance) {
  const auto inputs = test::random_inputs(body, 5);
  const auto expected = run_reference(body, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  test::ProblemRun run(made.problem);
  for (const auto& [number, value] : made.inputs) {
    run.set(number, test::to_doubles(inputs[input_number(body, value)]));
  }
  run.run();
  const auto want = test::to_doubles((*expected)[0]);
  const auto& got = run.data(made.output);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
  }
}

struct ConvCase {
  const char* name;
  Shape x, w;
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  int64_t groups = 1;
  bool transposed = false;
};

std::vector<ConvCase> conv_cases() {
  return {
      {"padded", {2, 3, 5, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"strided", {1, 4, 7, 6}, {2, 4, 3, 2}, {2, 3}, {1, 1}, {1, 0}, {1, 0}},
      {"uneven_padding", {1, 2, 5, 5}, {3, 2, 2, 2}, {1, 1}, {1, 1}, {0, 1}, {1, 0}},
      {"dilated", {1, 2, 8, 9}, {2, 2, 3, 3}, {1, 1}, {2, 3}, {2, 1}, {2, 1}},
      {"grouped", {2, 4, 5, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
      {"depthwise", {1, 4, 5, 5}, {4, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 4},
      {"line", {2, 3, 9}, {4, 3, 3}, {2}, {1}, {1}, {1}},
      {"volume", {1, 2, 4, 5, 3}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}},
      {"transposed", {1, 4, 4, 5}, {4, 3, 2, 3}, {2, 2}, {1, 1}, {0, 1}, {0, 1}, 1, true},
      {"transposed_grouped", {2, 4, 3, 3}, {4, 2, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, 2, true},
  };
}

enum class Epilogue { kNone, kBias, kBiasRelu, kBiasAddRelu, kSwish, kClip };

struct Layout {
  bool last = false;
  ValueId read(Graph& graph, const char* name, const TensorType& type) const {
    if (!last) return graph.add_input(name, type);
    Shape stored = type.shape;
    std::rotate(stored.begin() + 1, stored.begin() + 2, stored.end());
    std::vector<int64_t> perm = {0, type.rank() - 1};
    for (int64_t axis = 1; axis + 1 < type.rank(); ++axis) perm.push_back(axis);
    return emit(graph, ir::Transpose{perm}, {graph.add_input(name, {type.dtype, stored})});
  }
  ValueId store(Graph& graph, ValueId value) const {
    if (!last) return value;
    std::vector<int64_t> perm = {0};
    for (int64_t axis = 2; axis < graph.type(value).rank(); ++axis) perm.push_back(axis);
    perm.push_back(1);
    return emit(graph, ir::Transpose{perm}, {value});
  }
};

ValueId number(Graph& graph, float value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return graph.add_constant("", {DType::kF32, {}}, SharedBytes::take({bytes.begin(), bytes.end()}));
}

Graph conv_body(const ConvCase& one, Layout layout, Epilogue epilogue, DType dtype = DType::kF32) {
  Graph graph;
  const auto typed = [&](Shape shape) { return TensorType{dtype, std::move(shape)}; };
  std::vector<ValueId> inputs = {layout.read(graph, "x", typed(one.x)),
                                 layout.read(graph, "w", typed(one.w))};
  const int64_t channels = one.transposed ? one.w[1] * one.groups : one.w[0];
  if (epilogue != Epilogue::kNone) inputs.push_back(graph.add_input("bias", typed({channels})));
  ir::Op op = ir::Conv{one.strides, one.dilations, one.pads_begin, one.pads_end, one.groups};
  if (one.transposed) {
    op = ir::ConvTranspose{
        one.strides, one.dilations, one.pads_begin, one.pads_end, Shape(one.strides.size(), 0),
        one.groups};
  }
  ValueId y = emit(graph, op, inputs);
  const auto apply = [&](ScalarFn fn, ValueId other) {
    y = emit(graph, ir::Pointwise{fn}, {y, other});
  };
  if (epilogue == Epilogue::kBiasAddRelu) {
    apply(ScalarFn::kAdd, layout.read(graph, "residual", graph.type(y)));
  }
  if (epilogue == Epilogue::kBiasRelu || epilogue == Epilogue::kBiasAddRelu) {
    apply(ScalarFn::kMax, number(graph, 0));
  }
  if (epilogue == Epilogue::kSwish) {
    apply(ScalarFn::kMul, emit(graph, ir::Pointwise{ScalarFn::kSigmoid}, {y}));
  }
  if (epilogue == Epilogue::kClip) {
    apply(ScalarFn::kMax, number(graph, -0.25F));
    apply(ScalarFn::kMin, number(graph, 0.5F));
  }
  graph.mark_output(layout.store(graph, y));
  return graph;
}

class ConvProblems : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvProblems, MeanWhatTheBodyMeans) {
  for (const bool last : {false, true}) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasRelu,
                                    Epilogue::kBiasAddRelu, Epilogue::kSwish, Epilogue::kClip}) {
      SCOPED_TRACE(std::string(last ? "channels last" : "channels second") + ", epilogue " +
                   std::to_string(static_cast<int>(epilogue)));
      const Graph body = conv_body(GetParam(), {last}, epilogue);
      const auto chain = match_epilogue_chain(body);
      ASSERT_TRUE(chain.ok()) << chain.error().message;
      EXPECT_EQ(chain->channels_last, last);
      for (const auto order : {EpilogueOrder::kAsWritten, EpilogueOrder::kResidualFirst}) {
        const auto made = fused_problem(body, *chain, order);
        if (!made.ok() && order == EpilogueOrder::kResidualFirst) {
          EXPECT_NE(epilogue, Epilogue::kBiasAddRelu);
          continue;
        }
        ASSERT_TRUE(made.ok()) << made.error().message;
        expect_meaning(body, *made, 1e-4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ConvProblems, testing::ValuesIn(conv_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// What the loop in front of the call makes.
std::vector<double> run_loop(const loop::LoopKernel& kernel, const HostTensor& input,
                             const TensorType& type) {
  const Operation operation = Operation{"loop", {}}.set("kernel", loop::encode(kernel));
  // NaN in f16, so that an element that nobody writes is seen.
  std::vector<std::byte> made(static_cast<size_t>(type.bytes()), std::byte{0x7F});
  const void* in = input.bytes.data();
  void* out = made.data();
  const auto run = run_host_operation(operation, {&input.type, 1}, {&in, 1}, {&type, 1}, {&out, 1});
  EXPECT_TRUE(run.ok()) << run.error().message;
  return test::to_doubles({type, SharedBytes::take(std::move(made))});
}

using Widening = Result<WideConv> (*)(const Graph&, const EpilogueChain&);

// The wide convolution of the widened operands is the body, whose inputs are f16.
void expect_wide(const ConvCase& one, Epilogue epilogue, Widening widening, int64_t channels) {
  SCOPED_TRACE(std::string(one.name) + ", epilogue " + std::to_string(static_cast<int>(epilogue)));
  const Graph body = conv_body(one, {true}, epilogue, DType::kF16);
  const auto chain = match_epilogue_chain(body);
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  const auto made = widening(body, *chain);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->wide.shape.back(), channels);
  const auto inputs = test::random_inputs(body, 5);
  test::ProblemRun run(made->conv.problem);
  for (const auto& [number, value] : made->conv.inputs) {
    const HostTensor& input = inputs[input_number(body, value)];
    auto stored = test::to_doubles(input);
    if (number == made->x) stored = run_loop(made->widen, input, made->wide);
    if (number == made->w) {
      const auto wide = run_reference(made->widen_weights, {&input, 1});
      ASSERT_TRUE(wide.ok()) << wide.error().message;
      EXPECT_EQ((*wide)[0].type.shape.back(), channels);
      stored = test::to_doubles((*wide)[0]);
    }
    ASSERT_EQ(run.data(number).size(), stored.size());
    run.set(number, std::move(stored));
  }
  run.run();
  const auto expected = run_reference(body, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const auto want = test::to_doubles((*expected)[0]);
  const auto& got = run.data(made->conv.output);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-3 * (1 + std::abs(want[i]))) << "element " << i;
  }
}

TEST(PadChannels, MeansWhatTheBodyMeans) {
  const std::vector<std::pair<ConvCase, int64_t>> cases = {
      {{"image", {2, 3, 5, 6}, {4, 3, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}}, 8},
      {{"line", {2, 3, 9}, {4, 3, 3}, {2}, {1}, {1}, {1}}, 8},
      {{"volume", {1, 10, 4, 5, 3}, {3, 10, 2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}},
       16},
  };
  for (const auto& [one, channels] : cases) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias}) {
      expect_wide(one, epilogue, pad_channels, channels);
    }
  }
}

TEST(FoldStrides, MeansWhatTheBodyMeans) {
  const std::vector<std::pair<ConvCase, int64_t>> cases = {
      {{"stem", {2, 3, 12, 14}, {4, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}}, 16},
      {{"odd", {1, 3, 11, 9}, {2, 3, 3, 5}, {2, 2}, {1, 1}, {1, 2}, {1, 2}}, 16},
      {{"uneven_padding", {1, 2, 7, 8}, {3, 2, 2, 3}, {2, 2}, {1, 1}, {0, 3}, {1, 0}}, 8},
      {{"cells_left_over", {1, 1, 11, 10}, {2, 1, 3, 3}, {4, 4}, {1, 1}, {0, 0}, {0, 0}}, 16},
      {{"patches", {2, 3, 9, 8}, {4, 3, 4, 4}, {4, 4}, {1, 1}, {0, 0}, {0, 0}}, 48},
      {{"smaller_than_stride", {1, 5, 7, 7}, {2, 5, 1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, 24},
      {{"line", {2, 3, 13}, {4, 3, 5}, {3}, {1}, {2}, {2}}, 24},
      {{"volume", {1, 2, 4, 7, 6}, {3, 2, 3, 3, 2}, {2, 2, 2}, {1, 1, 1}, {1, 0, 1}, {0, 1, 1}},
       16},
  };
  for (const auto& [one, channels] : cases) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias}) {
      expect_wide(one, epilogue, fold_strides, channels);
    }
  }
}

TEST(FoldStrides, MakesAConvolutionOfStrideOneAndNoPadding) {
  const ConvCase stem{"stem", {1, 3, 224, 224}, {64, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}};
  const Graph body = conv_body(stem, {true}, Epilogue::kBias, DType::kF16);
  const auto chain = match_epilogue_chain(body);
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  const auto made = fold_strides(body, *chain);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto& o = std::get<CudnnConvolution>(made->conv.problem.operations.front());
  EXPECT_EQ(o.strides, (Shape{1, 1}));
  EXPECT_EQ(o.pads_begin, (Shape{0, 0}));
  EXPECT_EQ(o.pads_end, (Shape{0, 0}));
  const auto& tensors = made->conv.problem.tensors;
  EXPECT_EQ(tensors[static_cast<size_t>(o.x)].dims, (Shape{1, 16, 115, 115}));
  EXPECT_EQ(tensors[static_cast<size_t>(o.w)].dims, (Shape{64, 16, 4, 4}));
  EXPECT_EQ(tensors[static_cast<size_t>(o.y)].dims, (Shape{1, 64, 112, 112}));
}

TEST(FoldStrides, RefusesWhatGainsNothing) {
  const auto why = [](const ConvCase& one) {
    const Graph body = conv_body(one, {true}, Epilogue::kNone, DType::kF16);
    const auto chain = match_epilogue_chain(body);
    EXPECT_TRUE(chain.ok());
    const auto made = fold_strides(body, *chain);
    return made.ok() ? "" : made.error().message;
  };
  const auto image = [](Shape strides, Shape dilations, int64_t channels = 3) {
    return ConvCase{"",
                    {1, channels, 40, 40},
                    {2, channels, 3, 3},
                    std::move(strides),
                    std::move(dilations),
                    {1, 1},
                    {1, 1}};
  };
  EXPECT_EQ(why(image({2, 2}, {1, 1})), "");
  EXPECT_EQ(why(image({1, 1}, {1, 1})), "its axes have no stride in common");
  EXPECT_EQ(why(image({2, 1}, {1, 1})), "its axes have no stride in common");
  EXPECT_EQ(why(image({2, 2}, {2, 1})), "its windows have gaps");
  EXPECT_EQ(why(image({3, 3}, {1, 1})), "its blocks have many channels");
  EXPECT_EQ(why(image({16, 16}, {1, 1})), "its blocks have many channels");
  EXPECT_EQ(why(image({2, 2}, {1, 1}, 9)), "its blocks have many channels");
  EXPECT_EQ(why(image({2, 2}, {1, 1}, 8)), "its channels fill vectors");
  ConvCase far = image({2, 2}, {1, 1});
  far.x = {1, 3, 1, 1};
  far.pads_begin = far.pads_end = {9, 9};
  EXPECT_EQ(why(far), "");
  far.w = {2, 3, 2, 2};
  far.pads_begin = {2, 2};
  far.pads_end = {0, 0};
  EXPECT_EQ(why(far), "its blocks hold nothing but padding");
}

TEST(PadChannels, RefusesWhatGainsNothing) {
  const auto why = [](const ConvCase& one, bool last, DType dtype) {
    const Graph body = conv_body(one, {last}, Epilogue::kNone, dtype);
    const auto chain = match_epilogue_chain(body);
    EXPECT_TRUE(chain.ok());
    const auto made = pad_channels(body, *chain);
    return made.ok() ? "" : made.error().message;
  };
  const ConvCase three = conv_cases()[0], grouped = conv_cases()[4];
  const ConvCase eight{"eight", {1, 8, 5, 5}, {2, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(why(three, true, DType::kF16), "");
  EXPECT_NE(why(three, false, DType::kF16), "");
  EXPECT_NE(why(three, true, DType::kF32), "");
  EXPECT_EQ(why(eight, true, DType::kF16), "its channels fill vectors");
  EXPECT_EQ(why(grouped, true, DType::kF16), "only plain convolutions are widened");
}

}  // namespace
}  // namespace kiln
