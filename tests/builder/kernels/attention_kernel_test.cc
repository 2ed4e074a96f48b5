// The kernel's text as host C++, with tensor cores played by the test, against attention written
// out in f64.
#include "builder/kernels/attention_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "builder/codegen/cuda/compile.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using codegen::Bytes;

using MaskOf = double (*)(int64_t row, int64_t column);

struct Case {
  const char* name;
  AttentionShape shape;
  MaskOf mask = nullptr;
};

// Row of the batch whose mask row `b` has.
int64_t mask_row(const AttentionShape& shape, int64_t b) {
  return shape.mask_period > 0 ? b % shape.mask_period : b;
}

constexpr double kHidden = -std::numeric_limits<double>::infinity();
double by_column(int64_t, int64_t column) { return -0.75 * static_cast<double>(column % 3); }
double by_place(int64_t row, int64_t column) { return by_column(row, row + column) * 2; }
double lowest_of_f16(int64_t, int64_t) { return -65504; }
double all_hidden(int64_t, int64_t) { return kHidden; }
// Every third row is hidden throughout, the others in part.
double third_rows(int64_t row, int64_t column) {
  return row % 3 == 0 || column % 5 == 1 ? kHidden : by_column(row, column);
}
// Nothing is seen before column 70, which is in the second tile or the third.
double tiles_ahead(int64_t row, int64_t column) {
  return column < 70 || row % 7 == 6 ? kHidden : 0;
}

// batch, rows, heads, elements: as a product leaves them that is split into heads.
AttentionPlace behind_rows(int64_t offset, int64_t width, int64_t rows, int64_t depth) {
  return {offset, rows * width, depth, width, 1};
}
AttentionPlace before_rows(int64_t heads, int64_t rows, int64_t depth) {
  return {0, heads * rows * depth, rows * depth, depth, 1};
}

AttentionShape separate(int64_t rows, int64_t columns, int64_t depth, int64_t value_depth) {
  AttentionShape shape;
  shape.batch = 2;
  shape.heads = shape.key_heads = 2;
  shape.rows = rows;
  shape.columns = columns;
  shape.depth = depth;
  shape.value_depth = value_depth;
  shape.q = before_rows(2, rows, depth);
  shape.k = before_rows(2, columns, depth);
  shape.v = before_rows(2, columns, value_depth);
  shape.y = behind_rows(0, 2 * value_depth, rows, value_depth);
  shape.scale = 1 / std::sqrt(static_cast<double>(depth));
  return shape;
}

AttentionShape packed(int64_t tokens, int64_t depth) {
  AttentionShape shape = separate(tokens, tokens, depth, depth);
  const int64_t width = 2 * depth;
  shape.q = behind_rows(0, 3 * width, tokens, depth);
  shape.k = behind_rows(width, 3 * width, tokens, depth);
  shape.v = behind_rows(2 * width, 3 * width, tokens, depth);
  return shape;
}

Case with_mask(Case one, DType dtype, AttentionPlace place, MaskOf mask) {
  one.shape.mask = dtype;
  one.shape.mask_place = place;
  one.mask = mask;
  return one;
}

Case with_zeros(Case one) {
  one.shape.masked_row_zero = true;
  return one;
}

std::vector<Case> cases() {
  AttentionShape causal = packed(70, 32), bf16 = separate(40, 100, 64, 64), grouped = causal;
  causal.causal = true;
  bf16.dtype = DType::kBF16;
  grouped = separate(9, 33, 128, 16);
  grouped.key_heads = 1;
  grouped.k = before_rows(1, 33, 128);
  grouped.v = before_rows(1, 33, 16);
  const Case masked = {"mask_by_row", separate(20, 37, 16, 32)};
  const Case bert = {"mask_by_column", packed(33, 16)};
  const Case hidden = {"all_masked", separate(5, 6, 16, 16)};
  const AttentionPlace by_rows_and_heads = {0, 2 * 21 * 37, 21 * 37, 37, 1};
  const Case zeros = {"zeros", separate(21, 37, 16, 32)}, mean = {"mean", zeros.shape};
  const Case ahead = {"tiles_ahead", separate(18, 150, 16, 16)};
  Case cut = {"zeros_causal", packed(35, 32)}, wide = {"zeros_bf16", separate(40, 100, 64, 64)};
  // Whole tiles, and masks by pairs or not.
  const Case whole = {"whole", separate(64, 128, 32, 16)};
  Case negative = {"negative_scale", packed(20, 16)};
  negative.shape.scale = -0.3;
  Case anew = {"begins_anew", separate(19, 19, 16, 16)};
  anew.shape.batch = 5;
  anew.shape.mask_period = 3;
  cut.shape.causal = true;
  wide.shape.dtype = DType::kBF16;
  return {
      {"packed", packed(50, 64)},
      {"causal", causal},
      {"bf16", bf16},
      {"grouped", grouped},
      {"one_token", separate(1, 1, 16, 16)},
      whole,
      negative,
      with_zeros(
          with_mask({"whole_zeros", whole.shape}, DType::kF16, {0, 0, 0, 128, 1}, third_rows)),
      with_mask({"whole_f32", whole.shape}, DType::kF32, {2, 128, 0, 0, 1}, by_column),
      with_mask({"apart", whole.shape}, DType::kF16, {1, 0, 0, 256, 2}, by_place),
      with_mask(masked, DType::kF32, {0, 20 * 37, 0, 37, 1}, by_place),
      with_mask(anew, DType::kF16, {0, 2 * 19 * 19, 19 * 19, 19, 1}, by_place),
      with_mask(bert, DType::kF16, {0, 33, 0, 0, 1}, by_column),
      with_mask(hidden, DType::kF16, {0, 0, 0, 0, 0}, lowest_of_f16),
      with_zeros(with_mask(zeros, DType::kF16, by_rows_and_heads, third_rows)),
      with_mask(mean, DType::kF16, by_rows_and_heads, third_rows),
      with_zeros(with_mask({"zeros_f32", zeros.shape}, DType::kF32, {0, 0, 0, 37, 1}, third_rows)),
      with_zeros(
          with_mask({"zeros_nowhere", masked.shape}, DType::kF16, {0, 37, 0, 0, 1}, by_column)),
      with_zeros(with_mask({"low_is_not_hidden", hidden.shape}, DType::kF16, {0, 0, 0, 0, 0},
                           lowest_of_f16)),
      with_zeros(with_mask({"all_zeros", hidden.shape}, DType::kF16, {0, 0, 0, 0, 0}, all_hidden)),
      with_zeros(with_mask(ahead, DType::kF16, {0, 0, 0, 150, 1}, tiles_ahead)),
      with_zeros(with_mask(cut, DType::kF16, {0, 0, 0, 35, 1}, third_rows)),
      with_zeros(with_mask(wide, DType::kBF16, {0, 0, 0, 100, 1}, third_rows)),
  };
}

int64_t extent_of(const AttentionPlace& place, const AttentionShape& shape, int64_t heads,
                  int64_t rows, int64_t depth) {
  return place.offset + (shape.batch - 1) * place.batch + (heads - 1) * place.head +
         (rows - 1) * place.row + (depth - 1) * place.element + 1;
}

struct Buffers {
  std::vector<HostTensor> inputs;  // q, k, v, mask
  int64_t results = 0;
};

HostTensor random_vector(DType dtype, int64_t elements, uint32_t seed) {
  std::mt19937 random(seed);
  return test::random_tensor({dtype, {elements}}, random);
}

HostTensor tensor_of(const TensorType& type, const std::vector<double>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  const HostTensor wide{{DType::kF64, type.shape}, SharedBytes::take({bytes.begin(), bytes.end()})};
  return run_reference_op(ir::Cast{type.dtype, true}, {&wide, 1}, {&type, 1}).value()[0];
}

Buffers buffers_of(const Case& one) {
  const AttentionShape& s = one.shape;
  Buffers made;
  made.inputs = {
      random_vector(s.dtype, extent_of(s.q, s, s.heads, s.rows, s.depth), 1),
      random_vector(s.dtype, extent_of(s.k, s, s.key_heads, s.columns, s.depth), 2),
      random_vector(s.dtype, extent_of(s.v, s, s.key_heads, s.columns, s.value_depth), 3)};
  made.results = extent_of(s.y, s, s.heads, s.rows, s.value_depth);
  if (s.mask == DType::kBool) {
    made.inputs.push_back(made.inputs[0]);
  } else {
    const AttentionPlace& place = s.mask_place;
    const int64_t extent = extent_of(place, s, s.heads, s.rows, s.columns);
    std::vector<double> mask(static_cast<size_t>(extent));
    const int64_t by_batch = s.mask_period > 0 ? 1 : 0;  // masks of the period differ
    for (int64_t i = 0; i < s.batch * s.heads; ++i) {
      const int64_t at =
          place.offset + mask_row(s, i / s.heads) * place.batch + i % s.heads * place.head;
      for (int64_t r = 0; r < s.rows; ++r) {
        for (int64_t c = 0; c < s.columns; ++c) {
          mask[static_cast<size_t>(at + r * place.row + c * place.element)] =
              one.mask(r + by_batch * mask_row(s, i / s.heads), c);
        }
      }
    }
    made.inputs.push_back(tensor_of({s.mask, {extent}}, mask));
  }
  return made;
}

// All 0 where nothing is seen.
std::vector<double> softmax(std::vector<double> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = most == kHidden ? 0 : std::exp(score - most);
  for (double& score : scores) score /= total == 0 ? 1 : total;
  return scores;
}

std::vector<double> expected(const AttentionShape& s, const Buffers& buffers) {
  std::vector<std::vector<double>> in;
  for (const HostTensor& input : buffers.inputs) in.push_back(test::to_doubles(input));
  const auto at = [](const AttentionPlace& p, int64_t b, int64_t h, int64_t r, int64_t e) {
    return static_cast<size_t>(p.offset + b * p.batch + h * p.head + r * p.row + e * p.element);
  };
  std::vector<double> y(static_cast<size_t>(buffers.results));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t shared = h / (s.heads / s.key_heads);
      for (int64_t r = 0; r < s.rows; ++r) {
        std::vector<double> scores;
        for (int64_t c = 0; c < s.columns && (!s.causal || c <= r); ++c) {
          double score = 0;
          for (int64_t e = 0; e < s.depth; ++e) {
            score += in[0][at(s.q, b, h, r, e)] * in[1][at(s.k, b, shared, c, e)];
          }
          score *= s.scale;
          if (s.mask != DType::kBool) score += in[3][at(s.mask_place, mask_row(s, b), h, r, c)];
          // A mask that hides every column hides none, unless zeros are asked for.
          const bool exact = s.masked_row_zero && (score == kHidden || s.mask == DType::kF16);
          scores.push_back(exact ? score : std::max(score, -30000.0));
        }
        const auto weights = softmax(scores);
        for (int64_t e = 0; e < s.value_depth; ++e) {
          double sum = 0;
          for (size_t c = 0; c < weights.size(); ++c) {
            sum += weights[c] * in[2][at(s.v, b, shared, static_cast<int64_t>(c), e)];
          }
          y[at(s.y, b, h, r, e)] = sum;
        }
      }
    }
  }
  return y;
}

codegen::HostProgram::Item item_of(const Case& one, const Buffers& buffers,
                                   const AttentionTiling& tiling) {
  codegen::HostProgram::Item item;
  for (const HostTensor& input : buffers.inputs) {
    item.kernel.buffers.push_back({input.type.dtype, input.type.shape[0], false});
  }
  item.kernel.buffers.push_back({one.shape.dtype, buffers.results, true});
  item.source.text = attention_text(one.shape, tiling);
  item.source.launches = {{"kiln_attention",
                           static_cast<uint64_t>(attention_blocks(one.shape, tiling)),
                           static_cast<uint32_t>(tiling.warps * 32)}};
  return item;
}

TEST(AttentionKernel, ComputesAttentionInEveryTiling) {
  std::vector<codegen::HostProgram::Item> items;
  std::vector<std::pair<Case, std::string>> names;
  for (const Case& one : cases()) {
    ASSERT_TRUE(check_attention_shape(one.shape).ok()) << one.name;
    for (const AttentionTiling& tiling : attention_tilings(one.shape)) {
      items.push_back(item_of(one, buffers_of(one), tiling));
      names.emplace_back(one, std::string(one.name) + " w" + std::to_string(tiling.warps) + " n" +
                                  std::to_string(tiling.tile));
    }
  }
  const auto program = codegen::HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(names[i].second);
    const Case& one = names[i].first;
    const Buffers buffers = buffers_of(one);
    std::vector<Bytes> inputs;
    for (const HostTensor& input : buffers.inputs) {
      inputs.emplace_back(input.bytes.data(), input.bytes.data() + input.bytes.size());
    }
    const auto outputs = program->run(i, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const auto found = test::to_doubles(
        {{one.shape.dtype, {buffers.results}}, SharedBytes::take(Bytes((*outputs)[0]))});
    const auto want = expected(one.shape, buffers);
    const double tolerance = one.shape.dtype == DType::kF16 ? 2e-3 : 1.6e-2;
    for (size_t e = 0; e < want.size(); ++e) {
      ASSERT_NEAR(found[e], want[e], tolerance * (1 + std::abs(want[e]))) << "element " << e;
    }
  }
}

TEST(AttentionKernel, CompilesWithoutSpills) {
  for (const Case& one : cases()) {
    // The tallest tile holds the most in registers.
    const AttentionTiling tiling = attention_tilings(one.shape).front();
    const auto cubin = codegen::compile_cuda(attention_text(one.shape, tiling), "sm_90a");
    if (!cubin.ok() && cubin.error().code == ErrorCode::kUnsupported) {
      GTEST_SKIP() << cubin.error().message;
    }
    ASSERT_TRUE(cubin.ok()) << cubin.error().message;
    EXPECT_EQ(cubin->spilled_bytes, 0U) << one.name << ": " << cubin->registers << " registers";
  }
}

TEST(AttentionKernel, SaysWhatItDoesNotTake) {
  const auto refusal = [](auto change) {
    AttentionShape shape = separate(4, 4, 16, 16);
    change(shape);
    const auto checked = check_attention_shape(shape);
    return checked.ok() ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal([](AttentionShape&) {}), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.dtype = DType::kF32; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.depth = 24; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.value_depth = 256; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.key_heads = 3; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.k.row = 20; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.v.offset = 4; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.q.element = 2; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.mask = DType::kI32; }), "");
  EXPECT_NE(refusal([](AttentionShape& s) { s.columns = 0; }), "");
}

}  // namespace
}  // namespace kiln
