#include "formats/loop_ir/loop_kernel.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "formats/loop_ir/analysis.h"
#include "tests/formats/loop_ir/exprs.h"

namespace kiln::loop {
namespace {

using namespace test;

// y[i, j] = x[i, j] - max over j of x[i, j], 3 x 5.
LoopKernel row_shift() {
  LoopKernel kernel;
  kernel.dims = {{3, false}, {5, true}};
  kernel.buffers = {{DType::kF32, 15, false}, {DType::kF32, 15, true}};
  const IndexMap map = affine({{0, 5}, {1, 1}});
  kernel.exprs = {load(0, map), reduce(ReduceFn::kMax, 0), apply(ScalarFn::kSub, {0, 1}),
                  store(1, 2, map)};
  return kernel;
}

// y[i] = x[i - 2] where that exists, else 0; 8 from 4.
LoopKernel padded() {
  LoopKernel kernel;
  kernel.dims = {{8, false}};
  kernel.buffers = {{DType::kF32, 4, false}, {DType::kF32, 8, true}};
  const IndexMap shifted = affine({{0, 1}}, -2);
  kernel.exprs = {load(0, shifted, {{shifted, 0, 4}}), store(1, 0, affine({{0, 1}}))};
  return kernel;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(LoopKernel, SoundKernelsVerify) {
  EXPECT_TRUE(verify(row_shift()).ok());
  const auto result = verify(padded());
  EXPECT_TRUE(result.ok()) << result.error().message;
}

TEST(LoopKernel, TextNamesDimsBuffersAndExprs) {
  EXPECT_EQ(to_text(row_shift()),
            "loop d0<3 d1~5\n"
            "  in b0 f32[15]\n"
            "  out b1 f32[15]\n"
            "  %0: f32 = b0[5*d0 + d1]\n"
            "  %1: f32 = reduce_max(%0)\n"
            "  %2: f32 = sub(%0, %1)\n"
            "  b1[5*d0 + d1] = %2\n");
}

// Each row damages a sound kernel in one way that must be refused.
struct Damage {
  const char* what;
  std::function<void(LoopKernel&)> apply;
};

TEST(LoopKernel, UnsoundKernelsAreRefused) {
  const std::vector<Damage> damages = {
      {"load past the end", [](auto& k) { k.exprs[0].map.offset = 1; }},
      {"load before the start", [](auto& k) { k.exprs[0].map.offset = -1; }},
      {"store past the end", [](auto& k) { k.exprs[3].map.offset = 1; }},
      {"store twice to one element", [](auto& k) { k.exprs[3].map.terms[0].stride = 4; }},
      {"store misses a dim", [](auto& k) { k.exprs[3].map.terms.pop_back(); }},
      {"larger extent", [](auto& k) { k.dims[0].extent = 4; }},
      {"negative extent", [](auto& k) { k.dims[0].extent = -3; }},
      {"endless extent", [](auto& k) { k.dims.push_back({int64_t{1} << 40, true}); }},
      {"overflowing extents", [](auto& k) { k.dims.assign(4, {int64_t{1} << 40, false}); }},
      {"forward argument", [](auto& k) { k.exprs[1].args[0] = 2; }},
      {"own argument", [](auto& k) { k.exprs[1].args[0] = 1; }},
      {"missing argument", [](auto& k) { k.exprs[2].args.pop_back(); }},
      {"no such buffer", [](auto& k) { k.exprs[0].buffer = 2; }},
      {"load from an output", [](auto& k) { k.exprs[0].buffer = 1; }},
      {"store to an input", [](auto& k) { k.exprs[3].buffer = 0; }},
      {"no such dim", [](auto& k) { k.exprs[0].map.terms[0].dim = 2; }},
      {"divisor 0", [](auto& k) { k.exprs[0].map.terms[0].divisor = 0; }},
      {"negative modulus", [](auto& k) { k.exprs[0].map.terms[0].modulus = -2; }},
      {"huge stride", [](auto& k) { k.exprs[0].map.terms[0].stride = INT64_MAX; }},
      {"huge offset", [](auto& k) { k.exprs[0].map.offset = INT64_MIN; }},
      {"unknown dtype", [](auto& k) { k.exprs[0].dtype = static_cast<DType>(77); }},
      {"other dtype", [](auto& k) { k.exprs[0].dtype = DType::kF64; }},
      {"unknown function", [](auto& k) { k.exprs[2].fn = static_cast<ScalarFn>(200); }},
      {"function of other types", [](auto& k) { k.exprs[2].fn = ScalarFn::kBitAnd; }},
      {"reduction of another type", [](auto& k) { k.exprs[1].reduce_fn = ReduceFn::kAny; }},
      {"expr after a store", [](auto& k) { k.exprs.push_back(k.exprs[0]); }},
      {"second store", [](auto& k) { k.exprs.push_back(k.exprs[3]); }},
      {"no store", [](auto& k) { k.exprs.pop_back(); }},
      {"input after output", [](auto& k) { k.buffers.push_back({DType::kF32, 1, false}); }},
      {"gather by a float", [](auto& k) { k.exprs[3].map.gathers = {{0, 1, 1}}; }},
  };
  for (const Damage& damage : damages) {
    LoopKernel kernel = row_shift();
    damage.apply(kernel);
    EXPECT_FALSE(verify(kernel).ok()) << damage.what;
  }
}

TEST(LoopKernel, BoundsNarrowOnlyWhatTheyRelateTo) {
  LoopKernel kernel = padded();
  kernel.exprs[0].bounds[0].high = 5;  // would read x[4]
  EXPECT_FALSE(verify(kernel).ok());
  kernel = padded();
  kernel.exprs[0].bounds[0].map.terms[0].divisor = 2;  // says nothing about d0
  EXPECT_FALSE(verify(kernel).ok());
  kernel = padded();
  kernel.exprs[0].map.terms.push_back({0, 1, 0, 1});  // d0 counts twice
  EXPECT_FALSE(verify(kernel).ok());
  kernel = padded();
  kernel.exprs[0].bounds[0].low = 3;
  EXPECT_TRUE(verify(kernel).ok());
}

TEST(LoopKernel, LoadsThatNeverRunNeedNoElements) {
  LoopKernel kernel;  // the sum of an empty row
  kernel.dims = {{3, false}, {0, true}};
  kernel.buffers = {{DType::kF32, 0, false}, {DType::kF32, 3, true}};
  kernel.exprs = {load(0, affine({{1, 1}})), reduce(ReduceFn::kSum, 0),
                  store(1, 1, affine({{0, 1}}))};
  EXPECT_TRUE(verify(kernel).ok());
  kernel.exprs[0].map.terms.clear();  // now it would run
  EXPECT_FALSE(verify(kernel).ok());
}

TEST(LoopKernel, BinaryRoundTrips) {
  for (const LoopKernel& kernel : {row_shift(), padded()}) {
    const std::string bytes = encode(kernel);
    auto decoded = decode_loop_kernel(bytes_of(bytes));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(*decoded, kernel);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_loop_kernel(bytes_of(bytes.substr(0, size))).ok());
    }
    EXPECT_FALSE(decode_loop_kernel(bytes_of(bytes + '\0')).ok());
  }
}

TEST(LoopKernel, DamagedBytesGiveAnErrorOrAnotherSoundKernel) {
  const std::string bytes = encode(row_shift());
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    auto decoded = decode_loop_kernel(bytes_of(damaged));
    if (!decoded.ok())
      ++refused;
    else
      EXPECT_EQ(encode(*decoded), damaged);
  }
  EXPECT_GT(refused, 10000);
}

TEST(LoopAnalysis, InjectiveMapsAreMixedRadix) {
  LoopKernel kernel;
  kernel.dims = {{4, false}, {6, false}};
  const auto injective = [&](std::vector<MapTerm> terms) {
    return is_injective(IndexMap{0, std::move(terms), {}}, 3, kernel);
  };
  EXPECT_TRUE(injective({{0, 1, 0, 6}, {1, 1, 0, 1}}));
  EXPECT_TRUE(injective({{0, 1, 0, -1}, {1, 1, 0, 4}}));
  EXPECT_TRUE(injective({{0, 1, 0, 2}, {1, 1, 2, 1}, {1, 2, 0, 8}}));
  EXPECT_FALSE(injective({{0, 1, 0, 5}, {1, 1, 0, 1}}));
  EXPECT_FALSE(injective({{0, 1, 0, 6}, {1, 1, 5, 1}}));
  EXPECT_FALSE(injective({{0, 1, 0, 6}}));
  EXPECT_FALSE(injective({{0, 1, 0, 6}, {1, 2, 0, 1}}));
}

}  // namespace
}  // namespace kiln::loop
