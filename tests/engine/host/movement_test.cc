#include <gtest/gtest.h>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

using F = std::vector<float>;

TEST(Movement, TransposeOfThreeAxes) {
  const auto out = run("transpose{perm=[2, 0, 1]}", {ramp({2, 3, 4})});
  EXPECT_EQ(out.type.shape, (Shape{4, 2, 3}));
  const auto values = out.values<float>();
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) EXPECT_EQ(values[(k * 2 + i) * 3 + j], i * 12 + j * 4 + k);
    }
  }
}

TEST(Movement, TransposeLargerThanATile) {
  const auto values = run("transpose{perm=[1, 0]}", {ramp({37, 50})}).values<float>();
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 37; ++j) ASSERT_EQ(values[i * 37 + j], j * 50 + i);
  }
}

TEST(Movement, SliceWalksBackwards) {
  const auto out = run("slice{sizes=[2, 3], starts=[0, 3], steps=[1, -1]}", {ramp({2, 4})});
  EXPECT_EQ(out.values<float>(), (F{3, 2, 1, 7, 6, 5}));
}

TEST(Movement, SliceStaysInside) {
  const auto error = error_of("slice{sizes=[3], starts=[0], steps=[2]}", {ramp({4})});
  EXPECT_EQ(error, "slice: start 0, size 3, step 2 leave axis 0 of f32[4]");
  EXPECT_NE(error_of("slice{sizes=[2], starts=[3], steps=[9223372036854775807]}", {ramp({4})}), "");
  EXPECT_NE(error_of("slice{sizes=[2], starts=[3], steps=[-9223372036854775808]}", {ramp({4})}),
            "");
  EXPECT_EQ(error_of("slice{sizes=[0], starts=[99], steps=[1]}", {ramp({4})}), "");
}

TEST(Movement, PadConcatBroadcast) {
  EXPECT_EQ(run("pad{after=[0, 1], before=[1, 0]}", {ramp({1, 2}), f32({}, {9})}).values<float>(),
            (F{9, 9, 9, 0, 1, 9}));
  const auto joined = run("concat{axis=1}", {ramp({2, 1}), f32({2, 0}, {}), ramp({2, 2}, 10)});
  EXPECT_EQ(joined.values<float>(), (F{0, 0, 10, 1, 20, 30}));
  EXPECT_EQ(run("broadcast{shape=[2, 2, 2]}", {ramp({2, 1})}).values<float>(),
            (F{0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(Movement, FourBitTypesKeepTheirElements) {
  const auto packed = tensor<uint8_t>(DType::kU4, {3}, {0x21, 0x03});
  EXPECT_EQ(run("slice{sizes=[3], starts=[2], steps=[-1]}", {packed}).values<uint8_t>(),
            (std::vector<uint8_t>{0x23, 0x01}));
}

TEST(Gather, TakesAndChecks) {
  const auto out = run("gather{axis=1}", {ramp({2, 3}), i64({2, 1}, {-1, 0})});
  EXPECT_EQ(out.type.shape, (Shape{2, 2, 1}));
  EXPECT_EQ(out.values<float>(), (F{2, 0, 5, 3}));
  EXPECT_EQ(error_of("gather{axis=0}", {ramp({2}), i32({1}, {2})}),
            "gather: index 2 is outside of [-2, 2)");
}

TEST(Gather, ElementsAndTuples) {
  EXPECT_EQ(
      run("gather_elements{axis=1}", {ramp({2, 2}), i64({2, 2}, {0, 0, 1, 0})}).values<float>(),
      (F{0, 0, 3, 2}));
  // ONNX GatherND example 5: batch_dims 1.
  EXPECT_EQ(run("gather_nd{batch_dims=1}", {ramp({2, 2, 2}), i64({2, 1}, {1, 0})}).values<float>(),
            (F{2, 3, 4, 5}));
}

TEST(Scatter, CombinesInOrder) {
  EXPECT_EQ(run("scatter_elements{axis=1, reduction=\"max\"}",
                {f32({1, 3}, {5, 1, 2}), i64({1, 3}, {0, -1, 0}), f32({1, 3}, {4, 7, 6})})
                .values<float>(),
            (F{6, 1, 7}));
  EXPECT_EQ(run("scatter_nd{reduction=\"add\"}",
                {ramp({2, 2}), i64({3, 1}, {0, 0, -1}), f32({3, 2}, {10, 10, 20, 20, 1, 1})})
                .values<float>(),
            (F{30, 31, 3, 4}));
}

}  // namespace
}  // namespace kiln::testing
