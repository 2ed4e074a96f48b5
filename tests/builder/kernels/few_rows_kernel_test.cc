// The kernel's text as host C++, with tensor cores played by the test, against sums in f64.
#include "builder/kernels/few_rows_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/lower_loop.h"
#include "builder/kernels/residency.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using codegen::Bytes;

struct Case {
  DType dtype;
  int64_t rows, columns, depth;
  bool constant_weights = true;
  bool all_tilings = true;
  int64_t parts = 1;

  DType result() const { return dtype == DType::kF8E4M3FN ? DType::kBF16 : dtype; }
  FewRowsShape shape() const { return {dtype, rows, columns, depth, constant_weights, parts}; }
};

// Odd extents: rows that no tile of 8 fills, columns and depths that end within a tile.
const Case kCases[] = {
    {DType::kBF16, 1, 1000, 768, true, false},
    {DType::kF16, 3, 7, 768},
    {DType::kBF16, 8, 1, 104},
    {DType::kF16, 16, 40, 264, false},
    {DType::kF16, 27, 40, 264},
    {DType::kBF16, 9, 33, 4096},
    {DType::kBF16, 1, 1, 8},
    {DType::kBF16, 8, 4104, 72, true, false},
    {DType::kF8E4M3FN, 1, 1000, 768, true, false},
    {DType::kF8E4M3FN, 5, 33, 1040},
    {DType::kF8E4M3FN, 19, 9, 272},
    {DType::kF32, 1, 1000, 768, false, false},
    {DType::kF32, 3, 7, 132},
    {DType::kF32, 8, 4104, 52, true, false},
    {DType::kF32, 1, 9, 4},
    {DType::kBF16, 1, 1000, 768, true, false, 2},
    {DType::kBF16, 7, 33, 1040, true, true, 2},
    {DType::kF16, 19, 41, 264, true, true, 2},
    {DType::kF8E4M3FN, 8, 9, 272, true, true, 2},
    {DType::kF32, 3, 7, 132, true, true, 2},
};

std::string name_of(const Case& one) {
  return std::string(to_string(one.dtype)) + " " + std::to_string(one.rows) + " x " +
         std::to_string(one.parts) + " x " + std::to_string(one.columns) + " x " +
         std::to_string(one.depth);
}

// max(product + bias, 0) + residual, from the product as the matmul leaves it; for two parts of a
// row max(first + bias, second) + residual.
Result<loop::LoopKernel> epilogue(const Case& one) {
  const std::string dtype(to_string(one.result()));
  const std::string rows = std::to_string(one.rows) + "x", row = std::to_string(one.columns) + "]";
  const std::string narrow = dtype + "[" + rows + row, wide = "f32[" + rows + row;
  std::string text = "graph {\n  input %0 : " + dtype + "[" + row +
                     " \"bias\"\n  input %1 : " + dtype + "[" + rows +
                     std::to_string(one.parts * one.columns) +
                     "] \"product\"\n  input %2 : " + wide + " \"residual\"\n";
  const auto line = [&](const std::string& op, const std::string& type) {
    text += "  " + op + " : " + type + " ; \"n\"\n";
  };
  if (one.parts == 1) {
    text += "  const %3 : f32[] \"zero\" = 0\n";
    line("%4 = cast{saturate=1, to=\"f32\"}(%1)", wide);
  } else {
    const auto slice = [&](int64_t start) {
      return "slice{sizes=[" + std::to_string(one.rows) + ", " + std::to_string(one.columns) +
             "], starts=[0, " + std::to_string(start) + "], steps=[1, 1]}(%1)";
    };
    line("%10 = " + slice(0), narrow);
    line("%11 = " + slice(one.columns), narrow);
    line("%4 = cast{saturate=1, to=\"f32\"}(%10)", wide);
    line("%3 = cast{saturate=1, to=\"f32\"}(%11)", wide);
  }
  line("%5 = cast{saturate=1, to=\"f32\"}(%0)", "f32[" + row);
  line("%6 = add(%4, %5)", wide);
  line("%7 = max(%6, %3)", wide);
  line("%8 = add(%7, %2)", wide);
  line("%9 = cast{saturate=1, to=\"" + dtype + "\"}(%8)", narrow);
  text += "  output %9 \"y\"\n}";
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, ir::parse_text(text));
  return lower_to_loop(graph);
}

constexpr uint32_t kProduct = 1;  // which of the epilogue's inputs it is

// x, w, bias, residual.
std::vector<HostTensor> inputs_of(const Case& one) {
  std::mt19937 random(11);
  return {test::random_tensor({one.dtype, {one.rows, one.depth}}, random),
          test::random_tensor({one.dtype, {one.parts * one.columns, one.depth}}, random),
          test::random_tensor({one.result(), {one.columns}}, random),
          test::random_tensor({DType::kF32, {one.rows, one.columns}}, random)};
}

std::vector<double> expected(const Case& one, const std::vector<HostTensor>& inputs) {
  std::vector<std::vector<double>> in;
  for (const HostTensor& input : inputs) in.push_back(test::to_doubles(input));
  const auto depth = static_cast<size_t>(one.depth), columns = static_cast<size_t>(one.columns);
  const auto product = [&](size_t m, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += in[0][m * depth + k] * in[1][n * depth + k];
    return sum;
  };
  std::vector<double> y;
  for (size_t m = 0; m < static_cast<size_t>(one.rows); ++m) {
    for (size_t n = 0; n < columns; ++n) {
      const double other = one.parts == 2 ? product(m, columns + n) : 0;
      y.push_back(std::max(product(m, n) + in[2][n], other) + in[3][y.size()]);
    }
  }
  return y;
}

// What is offered to large products alone: blocks that share the depth, fetches ahead, a late start
// of the next kernel.
constexpr FewRowsTiling kOfLargeProducts[] = {
    {1, 1, 4, 3, 1, true, false, 2, 1, 2},
    {2, 2, 2, 2, 2, false, true, 0, 2, 4},
    {4, 1, 1, 4, 1, true, false, 1, 0, 8},
};

struct Variant {
  Case one;
  FewRowsTiling tiling;
  std::string text;
  int64_t blocks;
};

// Few multiprocessors, so that blocks have several tiles.
std::vector<Variant> variants(const Case& one, uint32_t multiprocessors,
                              const std::vector<FewRowsTiling>& tilings) {
  const auto kernel = epilogue(one);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  const auto finish = codegen::row_function(*kernel, kProduct, one.columns * one.parts);
  EXPECT_TRUE(finish.ok()) << finish.error().message;
  std::vector<Variant> made;
  for (const FewRowsTiling& tiling : tilings) {
    const int64_t blocks = few_rows_blocks(one.shape(), tiling, multiprocessors);
    made.push_back({one, tiling, few_rows_text(one.shape(), tiling, blocks, *finish), blocks});
    if (!one.all_tilings) break;
  }
  return made;
}

codegen::HostProgram::Item item_of(const Variant& variant) {
  codegen::HostProgram::Item item;
  for (const HostTensor& input : inputs_of(variant.one)) {
    item.kernel.buffers.push_back({input.type.dtype, input.type.elements(), false});
  }
  const Case& one = variant.one;
  item.kernel.buffers.push_back({one.result(), one.rows * one.columns, true});
  item.source.text = variant.text;
  item.source.launches = {{"kiln_few_rows", static_cast<uint64_t>(variant.blocks),
                           static_cast<uint32_t>(variant.tiling.warps * 32),
                           static_cast<uint32_t>(variant.tiling.split)}};
  return item;
}

double tolerance_of(DType dtype) {
  return dtype == DType::kF32 ? 1e-5 : dtype == DType::kF16 ? 1e-3 : 8e-3;
}

TEST(FewRowsKernel, MultipliesAndFinishesInEveryTiling) {
  std::vector<Variant> all;
  for (const Case& one : kCases) {
    ASSERT_TRUE(check_few_rows(one.shape(), 90).ok()) << name_of(one);
    auto tilings = few_rows_tilings(one.shape(), 90);
    if (one.all_tilings && one.dtype != DType::kF32) {
      std::ranges::copy_if(
          kOfLargeProducts, std::back_inserter(tilings),
          [&](const FewRowsTiling& tiling) { return tiling.groups % one.parts == 0; });
    }
    const auto some = variants(one, 3, tilings);
    ASSERT_FALSE(some.empty()) << name_of(one);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<codegen::HostProgram::Item> items;
  for (const Variant& variant : all) items.push_back(item_of(variant));
  const auto program = codegen::HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (size_t i = 0; i < items.size(); ++i) {
    const Case& one = all[i].one;
    SCOPED_TRACE(name_of(one) + " " + to_string(all[i].tiling));
    const auto inputs = inputs_of(one);
    std::vector<Bytes> bytes;
    for (const HostTensor& input : inputs) {
      bytes.emplace_back(input.bytes.data(), input.bytes.data() + input.bytes.size());
    }
    const auto outputs = program->run(i, bytes);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const auto found = test::to_doubles(
        {{one.result(), {one.rows * one.columns}}, SharedBytes::take(Bytes((*outputs)[0]))});
    const auto want = expected(one, inputs);
    // Sums in another order: the error is relative to the terms, of which there are `depth`.
    const double sums = 1e-6 * std::sqrt(static_cast<double>(one.depth));
    for (size_t e = 0; e < want.size(); ++e) {
      ASSERT_NEAR(found[e], want[e], tolerance_of(one.result()) * std::abs(want[e]) + sums + 1e-5)
          << "element " << e;
    }
  }
}

TEST(FewRowsKernel, CompilesWithoutLocalMemory) {
  for (const Case& one :
       {Case{DType::kBF16, 1, 4096, 4096}, Case{DType::kBF16, 8, 28672, 4096},
        Case{DType::kBF16, 16, 4096, 4096}, Case{DType::kF16, 16, 4096, 14336},
        Case{DType::kBF16, 3, 1024, 1024}, Case{DType::kBF16, 32, 28672, 4096},
        Case{DType::kBF16, 1, 50257, 768}, Case{DType::kF16, 32, 50257, 768},
        Case{DType::kF8E4M3FN, 1, 28672, 4096}, Case{DType::kF8E4M3FN, 16, 4096, 14336},
        Case{DType::kF32, 1, 4096, 4096}, Case{DType::kF32, 8, 1001, 132}}) {
    std::vector<std::string> texts;
    const auto all = variants(one, 132, few_rows_tilings(one.shape(), 90));
    for (const Variant& variant : all) texts.push_back(variant.text);
    const auto cubins = codegen::CubinCache("sm_90a").compile_all(texts, 2);
    for (size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(name_of(one) + " " + to_string(all[i].tiling));
      const auto& cubin = cubins[i];
      if (!cubin.ok() && cubin.error().code == ErrorCode::kUnsupported) {
        GTEST_SKIP() << cubin.error().message;
      }
      ASSERT_TRUE(cubin.ok()) << cubin.error().message;
      EXPECT_EQ(cubin->local_bytes + cubin->spilled_bytes, 0u);
      // The blocks that a multiprocessor is to have and as many of the next kernel fit.
      const auto& tiling = all[i].tiling;
      const auto threads = static_cast<uint32_t>(tiling.warps * 32 * tiling.blocks * 2);
      EXPECT_LE(cubin->registers * threads, 65536u) << cubin->registers << " registers";
      EXPECT_EQ(cubin->shared_bytes, 0u);  // but for the launch's
    }
  }
}

TEST(FewRowsKernel, FillsAllPlaces) {
  const FewRowsShape shape{DType::kBF16, 1, 4096, 4096, true};
  EXPECT_EQ(few_rows_blocks(shape, {1, 2, 8, 4, 2}, 132), 264);
  EXPECT_EQ(few_rows_blocks(shape, {1, 2, 8, 4, 2}, 1), 2);
  EXPECT_EQ(few_rows_blocks({DType::kBF16, 1, 9, 64, true}, {1, 2, 8, 4, 2}, 132), 2);
}

// GPT-2's logits: rows of results that begin on no boundary of 4 bytes.
TEST(FewRowsKernel, TakesAnyNumberOfColumns) {
  for (int64_t rows = 1; rows <= 32; ++rows) {
    const FewRowsShape shape{DType::kBF16, rows, 50257, 768, true};
    const auto checked = check_few_rows(shape, 90);
    EXPECT_TRUE(checked.ok()) << rows << " rows";
    EXPECT_FALSE(few_rows_tilings(shape, 90).empty()) << rows << " rows";
  }
}

TEST(FewRowsKernel, SaysWhatItDoesNotTake) {
  const auto refusal = [](const FewRowsShape& shape) {
    const auto checked = check_few_rows(shape, 90);
    return checked.ok() ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({DType::kBF16, 16, 7, 8, true}), "");
  EXPECT_NE(refusal({DType::kBF16, 33, 8, 8, true}), "");
  EXPECT_NE(refusal({DType::kF32, 9, 8, 8, true}), "");
  EXPECT_NE(refusal({DType::kF64, 1, 8, 8, true}), "");
  EXPECT_NE(refusal({DType::kBF16, 0, 8, 8, true}), "");
  EXPECT_NE(refusal({DType::kBF16, 16, 1 << 30, 8, true}), "");
  EXPECT_EQ(refusal({DType::kF16, 1, 8, 4097, true}),
            "rows of 4097 elements do not begin on 16-byte boundaries");
  for (int64_t depth : {1, 13, 4, 12}) EXPECT_NE(refusal({DType::kF16, 1, 8, depth, true}), "");
}

}  // namespace
}  // namespace kiln
