// Operations that the models rarely use: a few values each, from ONNX's examples or by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

using F = std::vector<float>;
using L = std::vector<int64_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string pool(const std::string& name, const std::string& window, const std::string& rest) {
  return name + "{" + rest + ", " + window + "}";
}

TEST(Pool, CeilModeDropsAWindowThatStartsInTheEndPadding) {
  const auto y = run(
      pool("max_pool", "dilations=[1], kernel_shape=[1], pads=[0, 1], strides=[2], with_indices=0",
           "ceil_mode=1, storage_order=0"),
      {ramp({1, 1, 4})});
  EXPECT_EQ(y.values<float>(), (F{0, 2}));
}

TEST(Pool, IndicesCountTheWholeInput) {
  const auto out = try_run(
      pool("max_pool", "dilations=[1], kernel_shape=[2], pads=[0, 0], strides=[2], with_indices=1",
           "ceil_mode=0, storage_order=0"),
      {f32({1, 2, 4}, {1, 2, 4, 3, 5, kNan, 7, 8})});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[1].values<int64_t>(), (L{1, 2, 5, 7}));
  EXPECT_TRUE(std::isnan((*out)[0].values<float>()[2]));
}

TEST(Pool, AveragesCountWhatTheyShould) {
  const std::string window = "dilations=[1], kernel_shape=[2], pads=[1, 0], strides=[2]";
  const auto x = f32({1, 1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(
      run(pool("average_pool", window, "ceil_mode=0, count_include_pad=0"), {x}).values<float>(),
      (F{1, 2.5}));
  EXPECT_EQ(
      run(pool("average_pool", window, "ceil_mode=0, count_include_pad=1"), {x}).values<float>(),
      (F{0.5, 2.5}));
  // The third window holds one cell; the other lies past the padded input and never counts.
  EXPECT_EQ(
      run(pool("average_pool", window, "ceil_mode=1, count_include_pad=1"), {x}).values<float>(),
      (F{0.5, 2.5, 4}));
}

std::string resize(const std::string& mode, const std::string& coordinates, float scale,
                   int64_t size) {
  return "resize{antialias=0, coordinate_transformation_mode=\"" + coordinates +
         "\", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"" + mode +
         "\", nearest_mode=\"floor\", roi=reals[], scales=[1.0, " + std::to_string(scale) +
         "], sizes=[1, " + std::to_string(size) + "]}";
}

TEST(Resize, LinearHalfPixelAndAlignCorners) {
  EXPECT_EQ(run(resize("linear", "half_pixel", 2, 4), {f32({1, 2}, {1, 2})}).values<float>(),
            (F{1, 1.25, 1.75, 2}));
  EXPECT_EQ(run(resize("linear", "align_corners", 1.5, 3), {f32({1, 2}, {1, 2})}).values<float>(),
            (F{1, 1.5, 2}));
  EXPECT_EQ(run(resize("nearest", "asymmetric", 2, 4), {f32({1, 2}, {1, kNan})}).values<float>()[1],
            1);
}

TEST(Resize, RefusesScalesThatDoNotGiveTheSizes) {
  EXPECT_NE(error_of(resize("linear", "half_pixel", 1e-6F, 9), {ramp({1, 4})}), "");
}

TEST(TopK, TiesKeepTheirOrderAndNanIsTheLargest) {
  const auto out =
      try_run("top_k{axis=0, k=4, largest=1, sorted=1}", {f32({5}, {1, 3, kNan, 3, 2})});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[1].values<int64_t>(), (L{2, 1, 3, 4}));
  EXPECT_EQ(error_of("top_k{axis=0, k=6, largest=1, sorted=1}", {ramp({5})}),
            "top_k: k is 6, axis 0 of f32[5] has 5 elements");
}

TEST(ArgMax, FirstLastAndNan) {
  const auto x = f32({2, 3}, {2, 1, 2, 1, kNan, 5});
  EXPECT_EQ(run("arg_max{axis=1, keepdims=0, select_last_index=0}", {x}).values<int64_t>(),
            (L{0, 1}));
  EXPECT_EQ(run("arg_max{axis=1, keepdims=0, select_last_index=1}", {x}).values<int64_t>(),
            (L{2, 1}));
  EXPECT_EQ(run("arg_min{axis=1, keepdims=0, select_last_index=0}", {x}).values<int64_t>(),
            (L{1, 1}));
}

TEST(CumSum, ExclusiveAndReverse) {
  EXPECT_EQ(
      run("cum_sum{axis=0, exclusive=1, reverse=1}", {f32({4}, {1, 2, 3, 4})}).values<float>(),
      (F{9, 7, 4, 0}));
}

TEST(ReverseSequence, ChecksTheLengths) {
  EXPECT_EQ(run("reverse_sequence{batch_axis=0, time_axis=1}", {ramp({2, 3}), i64({2}, {2, 3})})
                .values<float>(),
            (F{1, 0, 2, 5, 4, 3}));
  EXPECT_EQ(
      error_of("reverse_sequence{batch_axis=0, time_axis=1}", {ramp({2, 3}), i64({2}, {2, 4})}),
      "reverse_sequence: length 4 is outside of [0, 3]");
}

// h = tanh(x w + h r), by hand, in both directions, with a short second sequence.
TEST(Recurrent, RnnInBothDirections) {
  const auto out = try_run(
      "rnn{activation_alpha=[0.0, 0.0], activation_beta=[0.0, 0.0], activations=[\"Tanh\", "
      "\"Tanh\"], clip=inf, direction=\"bidirectional\"}",
      {f32({2, 2, 1}, {1, 2, 3, 4}), f32({2, 1, 1}, {0.5, 0.25}), f32({2, 1, 1}, {2, 1}),
       f32({2, 2}, {0, 0, 0, 0}), i32({2}, {2, 1}), f32({2, 2, 1}, {0, 0, 0, 0})});
  ASSERT_TRUE(out.ok()) << out.error().message;
  const auto y = (*out)[0].values<float>();  // [T, D, B, H]
  const float first = std::tanh(0.5F), later = std::tanh(0.75F);
  EXPECT_FLOAT_EQ(y[0], first);                        // t 0, forward, row 0
  EXPECT_FLOAT_EQ(y[4], std::tanh(1.5F + 2 * first));  // t 1, forward, row 0
  EXPECT_FLOAT_EQ(y[6], later);                        // t 1, backward, row 0
  EXPECT_FLOAT_EQ(y[2], std::tanh(0.25F + later));     // t 0, backward, row 0
  EXPECT_FLOAT_EQ(y[3], std::tanh(0.5F));              // t 0, backward, row 1 starts here
  EXPECT_EQ(y[5], 0);                                  // t 1, forward, row 1 is over
  EXPECT_FLOAT_EQ((*out)[1].values<float>()[1], std::tanh(1.0F));  // row 1 ends after t 0
}

TEST(Dft, InverseUndoesIt) {
  const auto x = f32({1, 4, 1}, {1, 2, 0, -1});
  const auto forward = run("dft{axis=1, inverse=0, length=4, onesided=1}", {x});
  EXPECT_EQ(forward.type.shape, (Shape{1, 3, 2}));
  EXPECT_FLOAT_EQ(forward.values<float>()[0], 2);
  const auto back = run("dft{axis=1, inverse=1, length=4, onesided=1}", {forward}).values<float>();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(back[i], x.values<float>()[i], 1e-6) << i;
}

TEST(Det, OfSingularAndPermutedMatrices) {
  EXPECT_EQ(run("det", {f32({2, 2, 2}, {1, 2, 2, 4, 0, 1, 1, 0})}).values<float>(), (F{0, -1}));
}

TEST(GridSample, ReadsBetweenCellsAndOutside) {
  const auto y = run("grid_sample{align_corners=1, mode=\"linear\", padding_mode=\"zeros\"}",
                     {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 1, 3, 2}, {0, 0, -1, 1, kNan, 0})});
  EXPECT_EQ(y.values<float>(), (F{2.5, 3, 0}));
}

TEST(MaxUnpool, ChecksPositions) {
  EXPECT_EQ(run("max_unpool{indexed_shape=[1, 1, 4], shape=[1, 1, 5]}",
                {f32({1, 1, 2}, {7, 8}), i64({1, 1, 2}, {1, 3})})
                .values<float>(),
            (F{0, 7, 0, 8, 0}));
  EXPECT_EQ(error_of("max_unpool{indexed_shape=[1, 1, 4], shape=[1, 1, 4]}",
                     {f32({1, 1, 1}, {7}), i64({1, 1, 1}, {4})}),
            "max_unpool: position 4 is outside of [0, 4)");
}

TEST(RoiAlign, RefusesImagesOutsideOfTheBatch) {
  const std::string text =
      "roi_align{coordinate_transformation_mode=\"half_pixel\", mode=\"avg\", output_height=1, "
      "output_width=1, sampling_ratio=2, spatial_scale=1.0}";
  EXPECT_EQ(run(text, {f32({1, 1, 1, 2}, {2, 4}), f32({1, 4}, {0, 0, 2, 1}), i64({1}, {0})})
                .values<float>(),
            (F{3}));
  EXPECT_EQ(error_of(text, {ramp({1, 1, 1, 2}), f32({1, 4}, {0, 0, 2, 1}), i64({1}, {1})}),
            "roi_align: image 1 is outside of a batch of 1");
}

}  // namespace
}  // namespace kiln::testing
