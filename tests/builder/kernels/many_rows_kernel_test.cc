// Which problems the kernel for many rows takes, in which tilings, and that its texts compile to
// what it counts on. It runs on a GPU only: tests/gpu/many_rows_test.cc.
#include "builder/kernels/many_rows_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"

namespace kiln {
namespace {

constexpr uint32_t kMultiprocessors = 132;
constexpr uint32_t kMostShared = 227 << 10;  // of a block, compute capability 9.0

std::string extents(int64_t rows, int64_t columns) {
  return "[" + std::to_string(rows) + "x" + std::to_string(columns) + "]";
}

// Of rows of the product with so many columns.
codegen::PairFunction finish_of(const codegen::Body& body, int64_t columns) {
  const auto kernel = lower_to_loop(body.graph);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  auto finish = codegen::pair_function(*kernel, 0, columns);
  EXPECT_TRUE(finish.ok()) << finish.error().message;
  return *std::move(finish);
}

enum class End { kGelu, kResidual, kSwiglu };
constexpr const char* kEndNames[] = {"gelu", "residual", "swiglu"};

// product, bias, residual -> gelu(product + bias) or product + bias + residual; or silu(gate) * up.
codegen::PairFunction finish_of(const ManyRowsShape& shape, End end) {
  codegen::Body b;
  const std::string type(to_string(shape.dtype));
  if (end == End::kSwiglu) {
    const auto product = b.in(type + extents(shape.rows, 2 * shape.columns));
    b.out(b.op(ir::Cast{shape.dtype}, {b.swiglu(b.op(ir::Cast{DType::kF32}, {product}))}));
    return finish_of(b, 2 * shape.columns);
  }
  const std::string whole = type + extents(shape.rows, shape.columns);
  const auto product = b.in(whole), bias = b.in(type + "[" + std::to_string(shape.columns) + "]");
  auto y = b.fn(ScalarFn::kAdd, {product, bias});
  if (end == End::kGelu) {
    const auto x = b.op(ir::Cast{DType::kF32}, {y});
    const auto erf = b.fn(ScalarFn::kErf, {b.fn(ScalarFn::kMul, {x, b.scalar(0.70710678f)})});
    const auto half = b.fn(ScalarFn::kMul, {x, b.scalar(0.5f)});
    y = b.fn(ScalarFn::kMul, {half, b.fn(ScalarFn::kAdd, {erf, b.scalar(1.0f)})});
    y = b.op(ir::Cast{shape.dtype}, {y});
  } else {
    y = b.fn(ScalarFn::kAdd, {y, b.in(whole)});
  }
  b.out(y);
  return finish_of(b, shape.columns);
}

struct Variant {
  std::string name, text;
  bool whole_columns = true;
};

void add_variants(ManyRowsShape shape, const std::string& name, const codegen::PairFunction& finish,
                  std::vector<Variant>& all) {
  shape.halves = finish.parts;
  shape.result = finish.result;
  for (const ManyRowsTiling& tiling : all_many_rows_tilings()) {
    if (!takes(tiling, shape)) continue;
    const int64_t blocks = many_rows_blocks(shape, tiling, kMultiprocessors);
    all.push_back({std::string(to_string(shape.dtype)) + extents(shape.rows, shape.columns) + " " +
                       to_string(tiling) + " " + name,
                   many_rows_text(shape, tiling, blocks, finish), shape.columns % 128 == 0});
  }
}

// Of products of f8e4m3fn, times factors of the columns, in another type.
codegen::PairFunction scaled(const ManyRowsShape& shape, DType result) {
  codegen::Body b;
  const auto product = b.in("f32" + extents(shape.rows, shape.columns));
  const auto y =
      b.fn(ScalarFn::kMul, {product, b.in("f32[" + std::to_string(shape.columns) + "]")});
  b.out(result == DType::kF32 ? y : b.op(ir::Cast{result}, {y}));
  return finish_of(b, shape.columns);
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const ManyRowsShape& shape : {ManyRowsShape{DType::kBF16, 4096, 3072, 768, true},
                                     ManyRowsShape{DType::kF16, 1000, 1000, 520, false}}) {
    for (const End end : {End::kGelu, End::kResidual, End::kSwiglu}) {
      add_variants(shape, kEndNames[static_cast<size_t>(end)], finish_of(shape, end), all);
    }
  }
  for (const ManyRowsShape& shape : {ManyRowsShape{DType::kF8E4M3FN, 4096, 3072, 768, true},
                                     ManyRowsShape{DType::kF8E4M3FN, 1000, 1008, 528, false}}) {
    for (const DType result : {DType::kF32, DType::kBF16, DType::kF8E4M3FN}) {
      add_variants(shape, "as " + std::string(to_string(result)), scaled(shape, result), all);
    }
    codegen::Body b;
    const auto product = b.in("f32" + extents(shape.rows, 2 * shape.columns));
    b.out(b.op(ir::Cast{DType::kF8E4M3FN},
               {b.swiglu(b.fn(ScalarFn::kMul, {product, b.scalar(2.f)}))}));
    add_variants(shape, "swiglu, quantised", finish_of(b, 2 * shape.columns), all);
  }
  return all;
}

TEST(ManyRowsKernel, CompilesWithinItsRegisters) {
  const auto all = variants();
  std::vector<std::string> texts;
  for (const Variant& variant : all) texts.push_back(variant.text);
  const auto cubins = codegen::CubinCache("sm_90a").compile_all(texts, 2);
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const auto& cubin = cubins[i];
    if (!cubin.ok() && cubin.error().code == ErrorCode::kUnsupported) {
      GTEST_SKIP() << cubin.error().message;
    }
    ASSERT_TRUE(cubin.ok()) << cubin.error().message;
    // What the launch gives all warps before they share it out anew: 64 K registers for 384
    // threads.
    EXPECT_EQ(cubin->registers, 168u);
    // Where columns end within a tile their numbers take some more.
    EXPECT_LE(cubin->spilled_bytes, all[i].whole_columns ? 0u : 256u);
    EXPECT_EQ(cubin->shared_bytes, 0u);  // but for the launch's
  }
}

TEST(ManyRowsKernel, TilingsFitAndHaveNames) {
  std::set<std::string> names;
  for (const ManyRowsTiling& tiling : all_many_rows_tilings()) {
    EXPECT_TRUE(names.insert(to_string(tiling)).second) << to_string(tiling);
    for (const DType result : {DType::kBF16, DType::kF32, DType::kF8E4M3FN}) {
      for (const int64_t halves : {1, 2}) {
        const ManyRowsShape shape{DType::kF8E4M3FN, 256, 256, 256, true, halves, result};
        if (!takes(tiling, shape)) continue;
        EXPECT_LE(many_rows_shared_bytes(shape, tiling), kMostShared) << to_string(tiling);
      }
    }
    const ManyRowsBoxes boxes = many_rows_boxes({}, tiling);
    // Boxes of a cluster begin on 8 rows, where the pattern of swapped pieces begins anew.
    EXPECT_TRUE(boxes.x % 8 == 0 && boxes.x <= 256) << to_string(tiling);
    EXPECT_TRUE(boxes.w % 8 == 0 && boxes.w <= 256) << to_string(tiling);
  }
  EXPECT_TRUE(names.contains("192x128.r4.c1x2"));
  EXPECT_TRUE(names.contains("64x128.r6.k4"));
}

TEST(ManyRowsKernel, OffersTheTilingsThatFillTheGpu) {
  for (const auto& [rows, columns] :
       {std::pair(64, 768), std::pair(4096, 768), std::pair(6304, 1024), std::pair(8192, 8192)}) {
    const auto tilings = many_rows_tilings({DType::kF16, rows, columns, 768, true}, 132);
    EXPECT_TRUE(!tilings.empty() && tilings.size() <= 4) << rows;
  }
  // 6 tiles of 128 columns would leave nearly all of it idle.
  const auto few = many_rows_tilings({DType::kF16, 64, 768, 768, true}, 132);
  EXPECT_EQ(to_string(few.front()).substr(0, 5), "64x64");
  // 22 x 6 tiles of 192 x 128 are one for each multiprocessor.
  const auto exact = many_rows_tilings({DType::kF16, 4096, 768, 3072, true}, 132);
  EXPECT_EQ(to_string(exact.front()), "192x128.r4.c1x2");
}

TEST(ManyRowsKernel, AddsUpProductsOfBytesInStepsToo) {
  for (const auto& [rows, columns, depth] :
       {std::array<int64_t, 3>{64, 768, 768}, {2048, 28672, 4096}, {8192, 8192, 8192}}) {
    const auto tilings = many_rows_tilings({DType::kF8E4M3FN, rows, columns, depth, true}, 132);
    const auto steps = std::ranges::count_if(tilings, &ManyRowsTiling::in_steps);
    EXPECT_GE(steps, 1) << rows;
    EXPECT_LT(static_cast<size_t>(steps), tilings.size()) << rows;
    EXPECT_LE(tilings.size(), 5u) << rows;
  }
  for (const auto& tiling : many_rows_tilings({DType::kBF16, 2048, 4096, 4096, true}, 132)) {
    EXPECT_FALSE(tiling.in_steps);
  }
}

TEST(ManyRowsKernel, JoinsHalvesInTilesOfBoth) {
  const ManyRowsShape gated{DType::kBF16, 2048, 14336, 4096, true, 2};
  const ManyRowsTiling pair{2, 128, 5, 2, 1}, alone{1, 128, 8, 1, 1};
  EXPECT_EQ(many_rows_boxes(gated, pair).w, 64u);  // either block copies one half for both
  EXPECT_EQ(many_rows_boxes(gated, alone).w, 64u);
  EXPECT_LT(many_rows_shared_bytes(gated, pair), many_rows_shared_bytes({}, pair));
  EXPECT_EQ(many_rows_blocks({DType::kBF16, 64, 640, 64, true, 2}, alone, 132), 10);
  for (const ManyRowsTiling& tiling : many_rows_tilings(gated, 132)) {
    EXPECT_EQ(tiling.columns, 128);
  }
}

TEST(ManyRowsKernel, TakesWideTilesWhereHalvesAreQuantised) {
  ManyRowsShape shape{DType::kF8E4M3FN, 2048, 14336, 4096, true, 2, DType::kF8E4M3FN};
  const auto tilings = many_rows_tilings(shape, 132);
  ASSERT_FALSE(tilings.empty());
  for (const ManyRowsTiling& tiling : tilings) EXPECT_EQ(tiling.columns, 256);
  shape.result = DType::kBF16;
  for (const ManyRowsTiling& tiling : many_rows_tilings(shape, 132)) {
    EXPECT_EQ(tiling.columns, 128);
  }
}

TEST(ManyRowsKernel, LaunchesWholeClusters) {
  const ManyRowsTiling pair{2, 128, 5, 2, 1};
  EXPECT_EQ(many_rows_blocks({DType::kF16, 8192, 8192, 64, true}, pair, 132), 132);
  EXPECT_EQ(many_rows_blocks({DType::kF16, 8192, 8192, 64, true}, pair, 131), 130);
  EXPECT_EQ(many_rows_blocks({DType::kF16, 1, 8, 64, true}, pair, 132), 2);
  EXPECT_EQ(many_rows_blocks({DType::kF16, 257, 128, 64, true}, pair, 132), 4);
  const ManyRowsTiling shares{1, 128, 6, 1, 1, 4};  // 4 blocks for each of 4 x 6 tiles
  EXPECT_EQ(many_rows_blocks({DType::kF16, 256, 768, 3072, true}, shares, 132), 96);
}

TEST(ManyRowsKernel, SharesTheDepthWhereTilesAreFew) {
  const auto offers_share = [](int64_t rows, int64_t columns, int64_t depth) {
    const auto tilings = many_rows_tilings({DType::kF16, rows, columns, depth, true}, 132);
    return std::ranges::any_of(tilings, [](const auto& tiling) { return tiling.splits > 1; });
  };
  EXPECT_TRUE(offers_share(256, 768, 3072));
  EXPECT_FALSE(offers_share(256, 768, 128));    // two stages
  EXPECT_FALSE(offers_share(4096, 768, 3072));  // more tiles than multiprocessors
}

TEST(ManyRowsKernel, SaysWhatItDoesNotTake) {
  const auto refusal = [](const ManyRowsShape& shape, uint32_t capability = 90) {
    const auto checked = check_many_rows(shape, capability);
    return checked.ok() ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({DType::kBF16, 1, 8, 8, true}), "");
  EXPECT_EQ(refusal({DType::kBF16, 1, 8, 8, true}, 100),
            "the GPU has compute capability 10.0, 9.0 expected");
  EXPECT_EQ(refusal({DType::kF32, 64, 8, 8, true}),
            "the operands are f32, f16, bf16 or f8e4m3fn expected");
  EXPECT_EQ(refusal({DType::kF16, 64, 8, 100, true}),
            "rows of 100 elements do not begin on 16-byte boundaries");
  EXPECT_EQ(refusal({DType::kF16, 64, 1001, 64, true}),
            "rows of 1001 elements do not begin on 16-byte boundaries");
  EXPECT_NE(refusal({DType::kF16, 0, 8, 8, true}), "");
  EXPECT_NE(refusal({DType::kF16, 1 << 20, 1 << 12, 8, true}), "");
}

}  // namespace
}  // namespace kiln
