// The problems that are made of convolution bodies mean what the bodies mean.
#include <gtest/gtest.h>

#include "builder/tactics/cuda/cudnn_conv.h"
#include "builder/tactics/cuda/pad_channels.h"
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

std::vector<double> widened(const std::vector<double>& rows, size_t from, size_t to) {
  std::vector<double> wide;
  for (size_t i = 0; i < rows.size(); ++i) {
    wide.push_back(rows[i]);
    if (i % from == from - 1) wide.resize(wide.size() + to - from);
  }
  return wide;
}

TEST(PadChannels, MeansWhatTheBodyMeans) {
  const std::vector<ConvCase> cases = {
      {"image", {2, 3, 5, 6}, {4, 3, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"line", {2, 3, 9}, {4, 3, 3}, {2}, {1}, {1}, {1}},
      {"volume", {1, 10, 4, 5, 3}, {3, 10, 2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}},
  };
  for (const ConvCase& one : cases) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias}) {
      SCOPED_TRACE(one.name);
      const Graph body = conv_body(one, {true}, epilogue, DType::kF16);
      const auto chain = match_epilogue_chain(body);
      ASSERT_TRUE(chain.ok()) << chain.error().message;
      const auto made = pad_channels(body, *chain);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const auto channels = static_cast<size_t>(one.x[1]);
      const size_t wide = channels < 8 ? 8 : 16;
      const auto inputs = test::random_inputs(body, 5);
      const auto expected = run_reference(body, inputs);
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      EXPECT_EQ(made->wide.shape.back(), static_cast<int64_t>(wide));
      ASSERT_EQ(made->pad.buffers.size(), 2u);
      EXPECT_EQ(made->pad.buffers[0].elements, inputs[0].type.elements());
      EXPECT_EQ(made->pad.buffers[1].elements, made->wide.elements());
      test::ProblemRun run(made->conv.problem);
      for (const auto& [number, value] : made->conv.inputs) {
        auto stored = test::to_doubles(inputs[input_number(body, value)]);
        if (number == made->x || number == made->w) stored = widened(stored, channels, wide);
        ASSERT_EQ(run.data(number).size(), stored.size());
        run.set(number, std::move(stored));
      }
      run.run();
      const auto want = test::to_doubles((*expected)[0]);
      const auto& got = run.data(made->conv.output);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 2e-3 * (1 + std::abs(want[i]))) << "element " << i;
      }
    }
  }
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

TEST(PadChannels, WidensRows) {
  std::vector<std::byte> bytes;
  for (int i = 1; i <= 6; ++i) bytes.push_back(static_cast<std::byte>(i));
  const SharedBytes wide = widen_rows(SharedBytes::take(bytes), 3, 5);
  const std::vector<int> want = {1, 2, 3, 0, 0, 4, 5, 6, 0, 0};
  ASSERT_EQ(wide.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(wide.data()[i]), want[i]) << i;
  }
}

}  // namespace
}  // namespace kiln
