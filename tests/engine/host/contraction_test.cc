// Matrix products, convolutions and attention against direct loops in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

HostTensor noise(Shape shape, uint32_t seed = 1) {
  std::vector<float> values(element_count(shape));
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return f32(std::move(shape), values);
}

void expect_near(const HostTensor& found, const std::vector<double>& expected, double tolerance) {
  const auto values = found.values<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], tolerance) << i;
}

struct Product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;

  friend std::ostream& operator<<(std::ostream& out, const Product& p) {
    return out << p.m << "x" << p.k << " by " << p.k << "x" << p.n << (p.transpose_a ? " ta" : "")
               << (p.transpose_b ? " tb" : "");
  }
};

class MatMul : public ::testing::TestWithParam<Product> {};

TEST_P(MatMul, EqualsDirectLoops) {
  const auto [m, n, k, ta, tb] = GetParam();
  const auto a = noise(ta ? Shape{k, m} : Shape{m, k}),
             b = noise(tb ? Shape{n, k} : Shape{k, n}, 7);
  const auto av = a.values<float>(), bv = b.values<float>();
  std::vector<double> expected(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        expected[i * n + j] += static_cast<double>(av[ta ? p * m + i : i * k + p]) *
                               static_cast<double>(bv[tb ? j * k + p : p * n + j]);
      }
    }
  }
  const std::string text = std::string("matmul{transpose_a=") + (ta ? "1" : "0") +
                           ", transpose_b=" + (tb ? "1" : "0") + "}";
  expect_near(run(text, {a, b}), expected, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatMul,
                         ::testing::Values(Product{1, 1, 1, false, false},
                                           Product{7, 33, 300, false, false},
                                           Product{100, 520, 17, true, false},
                                           Product{390, 40, 257, false, true},
                                           Product{13, 65, 64, true, true}));

TEST(MatMulSemantics, LeadingAxesBroadcast) {
  const auto out =
      run("matmul{transpose_a=0, transpose_b=0}", {ramp({2, 1, 1, 2}), ramp({3, 2, 1})});
  EXPECT_EQ(out.type.shape, (Shape{2, 3, 1, 1}));
  EXPECT_EQ(out.values<float>(), (std::vector<float>{1, 3, 5, 3, 13, 23}));
}

TEST(MatMulSemantics, EmptyInnerExtentGivesZeros) {
  EXPECT_EQ(run("matmul{transpose_a=0, transpose_b=0}", {f32({2, 0}, {}), f32({0, 1}, {})})
                .values<float>(),
            (std::vector<float>{0, 0}));
}

TEST(MatMulSemantics, HalfAccumulatesInSinglePrecision) {
  const std::vector<uint16_t> ones(4096, 0x3C00);
  const auto out =
      run("matmul{transpose_a=0, transpose_b=0}",
          {tensor(DType::kF16, {1, 4096}, ones), tensor(DType::kF16, {4096, 1}, ones)});
  EXPECT_EQ(out.values<uint16_t>(), (std::vector<uint16_t>{0x6C00}));  // 4096
}

TEST(MatMulSemantics, RowsDoNotDependOnTheBatch) {
  const auto a = noise({37, 300}), b = noise({300, 45}, 5);
  auto row = a;
  row.type.shape = {1, 300};
  row.bytes.resize(1200);
  const auto all = run("matmul{transpose_a=0, transpose_b=0}", {a, b}).values<float>();
  const auto one = run("matmul{transpose_a=0, transpose_b=0}", {row, b}).values<float>();
  for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(one[i], all[i]);
}

TEST(MatMulSemantics, RejectsOtherInnerExtents) {
  EXPECT_EQ(error_of("matmul{transpose_a=0, transpose_b=0}", {ramp({2, 3}), ramp({2, 3})}),
            "matmul: inputs are f32[2x3] and f32[2x3], the inner extents 3 and 2 differ");
}

struct Convolution {
  int64_t channels, out_channels, groups, height, width, kernel_h, kernel_w, stride, dilation;
  std::vector<int64_t> begin, end;

  friend std::ostream& operator<<(std::ostream& out, const Convolution& c) {
    return out << c.channels << " to " << c.out_channels << " channels in " << c.groups
               << " groups on " << c.height << "x" << c.width << ", kernel " << c.kernel_h << "x"
               << c.kernel_w;
  }
};

std::string conv_text(const char* name, const Convolution& c, const char* extra = "") {
  const auto two = [](int64_t a, int64_t b) {
    return "[" + std::to_string(a) + ", " + std::to_string(b) + "]";
  };
  return std::string(name) + "{dilations=" + two(c.dilation, c.dilation) +
         ", groups=" + std::to_string(c.groups) + extra +
         ", pads_begin=" + two(c.begin[0], c.begin[1]) + ", pads_end=" + two(c.end[0], c.end[1]) +
         ", strides=" + two(c.stride, c.stride) + "}";
}

class Conv : public ::testing::TestWithParam<Convolution> {};

TEST_P(Conv, EqualsDirectLoops) {
  const Convolution& c = GetParam();
  const int64_t per_group = c.channels / c.groups, out_per_group = c.out_channels / c.groups;
  const auto x = noise({2, c.channels, c.height, c.width});
  const auto w = noise({c.out_channels, per_group, c.kernel_h, c.kernel_w}, 3);
  const auto bias = noise({c.out_channels}, 9);
  const auto y = run(conv_text("conv", c), {x, w, bias});
  const auto xv = x.values<float>(), wv = w.values<float>(), bv = bias.values<float>();
  const int64_t oh = y.type.shape[2], ow = y.type.shape[3];
  std::vector<double> expected;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t m = 0; m < c.out_channels; ++m) {
      for (int64_t i = 0; i < oh * ow; ++i) {
        double sum = bv[m];
        for (int64_t k = 0; k < per_group * c.kernel_h * c.kernel_w; ++k) {
          const int64_t kw = k % c.kernel_w, kh = k / c.kernel_w % c.kernel_h;
          const int64_t channel = m / out_per_group * per_group + k / c.kernel_w / c.kernel_h;
          const int64_t row = i / ow * c.stride + kh * c.dilation - c.begin[0];
          const int64_t column = i % ow * c.stride + kw * c.dilation - c.begin[1];
          if (row < 0 || column < 0 || row >= c.height || column >= c.width) continue;
          sum += static_cast<double>(
                     xv[((n * c.channels + channel) * c.height + row) * c.width + column]) *
                 static_cast<double>(wv[m * per_group * c.kernel_h * c.kernel_w + k]);
        }
        expected.push_back(sum);
      }
    }
  }
  expect_near(y, expected, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Conv,
    ::testing::Values(Convolution{3, 8, 1, 9, 7, 3, 3, 1, 1, {1, 1}, {1, 1}},
                      Convolution{4, 6, 2, 8, 9, 3, 2, 2, 1, {0, 2}, {1, 0}},
                      Convolution{3, 6, 3, 40, 41, 3, 3, 1, 2, {2, 1}, {2, 3}},
                      Convolution{16, 20, 1, 30, 30, 1, 1, 1, 1, {0, 0}, {0, 0}},
                      Convolution{2, 2, 1, 5, 5, 1, 3, 3, 1, {4, 0}, {0, 4}},
                      Convolution{2, 2, 1, 7, 7, 2, 2, 1, 1, {-1, 0}, {0, -2}}));

class ConvTranspose : public ::testing::TestWithParam<Convolution> {};

// The transpose of conv as a linear map: <conv(u), x> = <u, conv_transpose(x)> for every u.
TEST_P(ConvTranspose, IsTheTransposeOfConv) {
  const Convolution& c = GetParam();
  const auto w = noise({c.channels, c.out_channels / c.groups, c.kernel_h, c.kernel_w}, 3);
  const auto x = noise({1, c.channels, c.height, c.width});
  const auto y = run(conv_text("conv_transpose", c, ", output_padding=[0, 0]"), {x, w});
  Convolution forward = c;
  std::swap(forward.channels, forward.out_channels);
  const auto u = noise(y.type.shape, 11);
  const auto back = run(conv_text("conv", forward), {u, w});
  ASSERT_EQ(back.type.shape, x.type.shape);
  const auto dot = [](const HostTensor& a, const HostTensor& b) {
    const auto av = a.values<float>(), bv = b.values<float>();
    double sum = 0;
    for (size_t i = 0; i < av.size(); ++i) sum += static_cast<double>(av[i]) * bv[i];
    return sum;
  };
  EXPECT_NEAR(dot(back, x), dot(u, y), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvTranspose,
                         ::testing::Values(Convolution{4, 6, 2, 5, 6, 3, 2, 2, 1, {1, 0}, {0, 1}},
                                           Convolution{
                                               3, 2, 1, 40, 41, 3, 3, 1, 2, {0, 0}, {0, 0}}));

TEST(ConvTransposeSemantics, OutputPaddingGrowsTheEnd) {
  const auto y =
      run("conv_transpose{dilations=[1], groups=1, output_padding=[1], pads_begin=[0], "
          "pads_end=[0], strides=[2]}",
          {f32({1, 1, 2}, {1, 2}), f32({1, 1, 2}, {10, 20})});
  EXPECT_EQ(y.values<float>(), (std::vector<float>{10, 20, 20, 40, 0}));
}

constexpr const char* kAttention = "attention{causal=%, masked_row_zero=#, scale=0.5, softcap=0.0}";
std::string attention(int causal, int zero) {
  std::string text = kAttention;
  text.replace(text.find('%'), 1, std::to_string(causal));
  return text.replace(text.find('#'), 1, std::to_string(zero));
}

TEST(Attention, EqualsItsDefinition) {
  const int64_t heads = 4, groups = 2, queries = 70, keys = 5, depth = 3;
  const auto q = noise({1, heads, queries, depth}), k = noise({1, groups, keys, depth}, 2);
  const auto v = noise({1, groups, keys, 2}, 4), mask = noise({queries, 1}, 6);
  const auto qv = q.values<float>(), kv = k.values<float>(), vv = v.values<float>();
  std::vector<double> expected;
  for (int64_t row = 0; row < heads * queries; ++row) {
    const int64_t group = row / queries / 2, query = row % queries;
    double sum = 0, out[2] = {};
    for (int64_t t = 0; t <= std::min(query, keys - 1); ++t) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d) {
        score += static_cast<double>(qv[row * depth + d]) * kv[(group * keys + t) * depth + d];
      }
      const double weight = std::exp(score * 0.5);  // a mask equal for all keys cancels
      sum += weight;
      for (int64_t e = 0; e < 2; ++e) out[e] += weight * vv[(group * keys + t) * 2 + e];
    }
    expected.insert(expected.end(), {out[0] / sum, out[1] / sum});
  }
  expect_near(run(attention(1, 0), {q, k, v, mask}), expected, 1e-5);
}

TEST(Attention, AFullyMaskedRowIsZeroOrTheMean) {
  const auto q = ramp({1, 1, 1, 1}), k = ramp({1, 1, 2, 1}), v = f32({1, 1, 2, 1}, {2, 4});
  const auto mask = boolean({1, 2}, {0, 0});
  EXPECT_EQ(run(attention(0, 1), {q, k, v, mask}).values<float>(), (std::vector<float>{0}));
  EXPECT_EQ(run(attention(0, 0), {q, k, v, mask}).values<float>(), (std::vector<float>{3}));
}

}  // namespace
}  // namespace kiln::testing
