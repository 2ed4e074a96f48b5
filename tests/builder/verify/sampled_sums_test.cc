#include "builder/verify/sampled_sums.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln {
namespace {

// One contraction with its result, by hand or by ONNX's documentation.
struct Case {
  Operation operation;
  std::vector<TensorType> types;
  std::vector<std::vector<float>> inputs;
  TensorType result_type;
  std::vector<float> result;

  Result<> check() const {
    std::vector<const void*> data;
    for (const auto& input : inputs) data.push_back(input.data());
    return check_sampled_sums(operation, types, data, result_type, result.data());
  }
};

TensorType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }

// Right as it is, and wrong with any single element changed.
void expect_checked(const Case& right) {
  const auto checked = right.check();
  ASSERT_TRUE(checked.ok()) << checked.error().message;
  for (size_t i = 0; i < right.result.size(); ++i) {
    Case wrong = right;
    wrong.result[i] += 0.001F * std::max(1.0F, std::abs(wrong.result[i]));
    const auto refused = wrong.check();
    ASSERT_FALSE(refused.ok()) << "element " << i;
    EXPECT_EQ(refused.error().code, ErrorCode::kVerification);
    EXPECT_NE(refused.error().message.find("element " + std::to_string(i) + " is"),
              std::string::npos)
        << refused.error().message;
  }
}

TEST(SampledSums, Matmul) {
  // [1 2; 3 4] [5 6; 7 8], and a second matrix for the broadcast operand.
  expect_checked({Operation{"matmul", {}},
                  {f32({2, 2}), f32({2, 2, 2})},
                  {{1, 2, 3, 4}, {5, 6, 7, 8, 1, 0, 0, 1}},
                  f32({2, 2, 2}),
                  {19, 22, 43, 50, 1, 2, 3, 4}});
}

TEST(SampledSums, MatmulOfCodes) {
  // [1.5 -448] [0.015625 2; 2^-9 1]: codes by the table of e4m3fn.
  const std::vector<uint8_t> a = {0x3c, 0xfe}, b = {0x08, 0x40, 0x01, 0x38};
  const void* const inputs[] = {a.data(), b.data()};
  const TensorType types[] = {{DType::kF8E4M3FN, {1, 2}}, {DType::kF8E4M3FN, {2, 2}}};
  std::vector<float> result = {-0.8515625F, -445};
  const auto check = [&] {
    return check_sampled_sums(Operation{"matmul", {}}, types, inputs, f32({1, 2}), result.data());
  };
  EXPECT_TRUE(check().ok());
  result[1] = -444;
  EXPECT_FALSE(check().ok());
}

TEST(SampledSums, TransposedMatmul) {
  // a is stored as [k, m] = [3, 1], b as [n, k] = [2, 3].
  expect_checked(
      {Operation{"matmul", {}}.set("transpose_a", int64_t{1}).set("transpose_b", int64_t{1}),
       {f32({3, 1}), f32({2, 3})},
       {{1, 2, 3}, {1, 1, 1, 4, 5, 6}},
       f32({1, 2}),
       {6, 32}});
}

TEST(SampledSums, Conv) {
  // Two groups; stride 2, dilation 2, one in front; the bias is 10 and 20.
  Operation conv{"conv", {}};
  conv.set("groups", int64_t{2});
  conv.set("strides", std::vector<int64_t>{2});
  conv.set("dilations", std::vector<int64_t>{2});
  conv.set("pads_begin", std::vector<int64_t>{1});
  // y[o] = w0 x[2 o - 1] + w1 x[2 o + 1] of the group's channel.
  expect_checked({conv,
                  {f32({1, 2, 5}), f32({2, 1, 2}), f32({2})},
                  {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {1, 10, 2, 3}, {10, 20}},
                  f32({1, 2, 2}),
                  {30, 52, 41, 61}});
}

TEST(SampledSums, ConvTranspose) {
  // ONNX's ConvTranspose example: x 0..8 as 3x3, two output channels of ones, stride 1.
  const std::vector<float> plane = {0,  1,  3, 3,  2,  3,  8,  15, 12, 7,  9,  21, 36,
                                    27, 15, 9, 20, 33, 24, 13, 6,  13, 21, 15, 8};
  std::vector<float> both = plane;
  both.insert(both.end(), plane.begin(), plane.end());
  expect_checked({Operation{"conv_transpose", {}},
                  {f32({1, 1, 3, 3}), f32({1, 2, 3, 3})},
                  {{0, 1, 2, 3, 4, 5, 6, 7, 8}, std::vector<float>(18, 1)},
                  f32({1, 2, 5, 5}),
                  both});
}

TEST(SampledSums, StridedConvTranspose) {
  // Stride 2, one cut off in front: x = [1, 2] with the window [1, 10, 100] gives
  // 1 10 102 20 200, without the first.
  Operation conv{"conv_transpose", {}};
  conv.set("strides", std::vector<int64_t>{2});
  conv.set("pads_begin", std::vector<int64_t>{1});
  expect_checked({conv,
                  {f32({1, 1, 2}), f32({1, 1, 3})},
                  {{1, 2}, {1, 10, 100}},
                  f32({1, 1, 4}),
                  {10, 102, 20, 200}});
}

TEST(SampledSums, NarrowResultsMayRound) {
  // 1 * 1 + 2^-9 * 1 in f16 and bf16: exact in the first, between two numbers in the second.
  const uint16_t f16[] = {0x3C00, 0x1800}, one_f16[] = {0x3C00, 0x3C00}, sum_f16 = 0x3C02;
  const TensorType row{DType::kF16, {1, 2}}, column{DType::kF16, {2, 1}},
      result{DType::kF16, {1, 1}};
  const TensorType types[] = {row, column};
  const void* inputs[] = {f16, one_f16};
  EXPECT_TRUE(check_sampled_sums(Operation{"matmul", {}}, types, inputs, result, &sum_f16).ok());
  const uint16_t off = 0x3C04;
  EXPECT_FALSE(check_sampled_sums(Operation{"matmul", {}}, types, inputs, result, &off).ok());
  const uint16_t bf16[] = {0x3F80, 0x3B00}, one_bf16[] = {0x3F80, 0x3F80}, sum_bf16 = 0x3F80;
  const TensorType bf16_types[] = {{DType::kBF16, {1, 2}}, {DType::kBF16, {2, 1}}};
  const void* bf16_inputs[] = {bf16, one_bf16};
  EXPECT_TRUE(check_sampled_sums(Operation{"matmul", {}}, bf16_types, bf16_inputs,
                                 {DType::kBF16, {1, 1}}, &sum_bf16)
                  .ok());
}

TEST(SampledSums, NanAndInfinityMatchTheirLike) {
  const float inf = INFINITY, nan = NAN;
  const auto dot = [](float a, float result) {
    return Case{
        Operation{"matmul", {}}, {f32({1, 1}), f32({1, 1})}, {{a}, {1}}, f32({1, 1}), {result}}
        .check()
        .ok();
  };
  EXPECT_TRUE(dot(nan, nan));
  EXPECT_FALSE(dot(nan, 0));
  EXPECT_FALSE(dot(1, nan));
  EXPECT_TRUE(dot(inf, inf));
  EXPECT_FALSE(dot(inf, -inf));
  EXPECT_FALSE(dot(1, inf));
}

}  // namespace
}  // namespace kiln
