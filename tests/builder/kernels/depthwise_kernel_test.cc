// The kernel's text as host C++, against sums in f64.
#include "builder/kernels/depthwise_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

using codegen::Bytes;

DepthwiseShape shape(DType dtype, int64_t batch, int64_t size, int64_t channels, int64_t window,
                     int64_t stride = 1) {
  DepthwiseShape made{.dtype = dtype, .batch = batch, .height = size, .width = size};
  made.channels = channels;
  made.window_y = made.window_x = window;
  made.stride_y = made.stride_x = stride;
  made.pad_y = made.pad_x = window / 2;
  made.out_height = made.out_width = (size + 2 * (window / 2) - window) / stride + 1;
  return made;
}

// Nothing alike in the two directions, padding behind that differs from that in front, a window
// that is wider than the image.
DepthwiseShape lopsided() {
  DepthwiseShape made{.dtype = DType::kBF16, .batch = 3, .height = 9, .width = 4, .channels = 24};
  made.window_y = 2;
  made.window_x = 6;
  made.stride_y = 3;
  made.stride_x = 1;
  made.pad_y = 0;
  made.pad_x = 3;
  made.out_height = 3;
  made.out_width = 5;
  return made;
}

std::vector<DepthwiseShape> cases() {
  return {shape(DType::kF16, 2, 14, 16, 3),    shape(DType::kBF16, 1, 11, 8, 5),
          shape(DType::kF16, 1, 13, 24, 3, 2), shape(DType::kF16, 1, 16, 8, 5, 2),
          shape(DType::kBF16, 2, 7, 32, 7),    shape(DType::kF16, 1, 1, 8, 3),
          shape(DType::kF16, 1, 9, 8, 1),      lopsided()};
}

std::string name_of(const DepthwiseShape& s) {
  return std::string(to_string(s.dtype)) + " " + std::to_string(s.height) + "x" +
         std::to_string(s.width) + "x" + std::to_string(s.channels) + " by " +
         std::to_string(s.window_y) + "x" + std::to_string(s.window_x);
}

// max(conv + bias, 0) + residual, from the convolution as it is stored, channels last.
Result<loop::LoopKernel> epilogue(const DepthwiseShape& s) {
  const std::string dtype(to_string(s.dtype));
  const std::string row = "[" + std::to_string(s.channels) + "]";
  const std::string whole = "[" + std::to_string(s.batch) + "x" + std::to_string(s.out_height) +
                            "x" + std::to_string(s.out_width) + "x" + row.substr(1);
  std::string text = "graph {\n  input %0 : f32" + row + " \"bias\"\n  input %1 : " + dtype +
                     whole + " \"conv\"\n  input %2 : " + dtype + whole +
                     " \"residual\"\n  const %3 : f32[] \"zero\" = 0\n";
  text += "  %4 = cast{saturate=1, to=\"f32\"}(%1) : f32" + whole + " ; \"n\"\n";
  text += "  %5 = add(%4, %0) : f32" + whole + " ; \"n\"\n";
  text += "  %6 = max(%5, %3) : f32" + whole + " ; \"n\"\n";
  text += "  %7 = cast{saturate=1, to=\"f32\"}(%2) : f32" + whole + " ; \"n\"\n";
  text += "  %8 = add(%6, %7) : f32" + whole + " ; \"n\"\n";
  text += "  %9 = cast{saturate=1, to=\"" + dtype + "\"}(%8) : " + dtype + whole +
          " ; \"n\"\n  output %9 \"y\"\n}";
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, ir::parse_text(text));
  return lower_to_loop(graph);
}

constexpr uint32_t kConvolved = 1;  // which of the epilogue's inputs it is

// x, w, bias, residual.
std::vector<HostTensor> inputs_of(const DepthwiseShape& s) {
  std::mt19937 random(5);
  const Shape whole = {s.batch, s.out_height, s.out_width, s.channels};
  return {test::random_tensor({s.dtype, {s.batch, s.height, s.width, s.channels}}, random),
          test::random_tensor({s.dtype, {s.window_y, s.window_x, s.channels}}, random),
          test::random_tensor({DType::kF32, {s.channels}}, random),
          test::random_tensor({s.dtype, whole}, random)};
}

double window_sum(const DepthwiseShape& s, const std::vector<double>& x,
                  const std::vector<double>& w, int64_t image, int64_t oy, int64_t ox, int64_t c) {
  double sum = 0;
  for (int64_t ky = 0; ky < s.window_y; ++ky) {
    for (int64_t kx = 0; kx < s.window_x; ++kx) {
      const int64_t y = oy * s.stride_y - s.pad_y + ky, column = ox * s.stride_x - s.pad_x + kx;
      if (y < 0 || y >= s.height || column < 0 || column >= s.width) continue;
      const int64_t at = ((image * s.height + y) * s.width + column) * s.channels + c;
      sum += x[static_cast<size_t>(at)] *
             w[static_cast<size_t>((ky * s.window_x + kx) * s.channels + c)];
    }
  }
  return sum;
}

std::vector<double> expected(const DepthwiseShape& s, const std::vector<HostTensor>& inputs) {
  std::vector<std::vector<double>> in;
  for (const HostTensor& input : inputs) in.push_back(test::to_doubles(input));
  std::vector<double> results;
  for (int64_t image = 0; image < s.batch; ++image) {
    for (int64_t oy = 0; oy < s.out_height; ++oy) {
      for (int64_t ox = 0; ox < s.out_width; ++ox) {
        for (int64_t c = 0; c < s.channels; ++c) {
          const double sum = window_sum(s, in[0], in[1], image, oy, ox, c);
          const double biased = sum + in[2][static_cast<size_t>(c)];
          results.push_back(std::max(biased, 0.0) + in[3][results.size()]);
        }
      }
    }
  }
  return results;
}

struct Variant {
  DepthwiseShape shape;
  DepthwiseTiling tiling;
  std::string text;
};

// On few multiprocessors, so that the coarse tilings of small images are among them.
std::vector<Variant> variants(const DepthwiseShape& one, uint32_t multiprocessors) {
  const auto kernel = epilogue(one);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  const auto finish =
      codegen::point_function(*kernel, kConvolved, static_cast<uint32_t>(kDepthwiseVector));
  EXPECT_TRUE(finish.ok()) << finish.error().message;
  std::vector<Variant> made;
  for (const DepthwiseTiling& tiling : depthwise_tilings(one, multiprocessors)) {
    made.push_back({one, tiling, depthwise_text(one, tiling, *finish)});
  }
  return made;
}

codegen::HostProgram::Item item_of(const Variant& variant) {
  codegen::HostProgram::Item item;
  int64_t results = 0;
  for (const HostTensor& input : inputs_of(variant.shape)) {
    item.kernel.buffers.push_back({input.type.dtype, input.type.elements(), false});
    results = input.type.elements();
  }
  item.kernel.buffers.push_back({variant.shape.dtype, results, true});
  item.source.text = variant.text;
  item.source.launches = {{"kiln_depthwise",
                           static_cast<uint64_t>(depthwise_blocks(variant.shape, variant.tiling)),
                           static_cast<uint32_t>(kDepthwiseThreads)}};
  return item;
}

TEST(DepthwiseKernel, ConvolvesAndFinishesInEveryTiling) {
  std::vector<Variant> all;
  for (const DepthwiseShape& one : cases()) {
    ASSERT_TRUE(check_depthwise(one).ok()) << name_of(one);
    const auto some = variants(one, 0);
    ASSERT_FALSE(some.empty()) << name_of(one);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<codegen::HostProgram::Item> items;
  for (const Variant& variant : all) items.push_back(item_of(variant));
  const auto program = codegen::HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (size_t i = 0; i < items.size(); ++i) {
    const DepthwiseShape& one = all[i].shape;
    SCOPED_TRACE(name_of(one) + " " + to_string(all[i].tiling));
    const auto inputs = inputs_of(one);
    std::vector<Bytes> bytes;
    for (const HostTensor& input : inputs) {
      bytes.emplace_back(input.bytes.data(), input.bytes.data() + input.bytes.size());
    }
    const auto outputs = program->run(i, bytes);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const auto want = expected(one, inputs);
    const auto found = test::to_doubles({{one.dtype, {static_cast<int64_t>(want.size())}},
                                         SharedBytes::take(Bytes((*outputs)[0]))});
    const double tolerance = one.dtype == DType::kF16 ? 1e-3 : 8e-3;
    for (size_t e = 0; e < want.size(); ++e) {
      ASSERT_NEAR(found[e], want[e], tolerance * std::abs(want[e]) + 1e-4) << "element " << e;
    }
  }
}

TEST(DepthwiseKernel, CompilesWithoutLocalMemory) {
  for (const DepthwiseShape& one :
       {shape(DType::kF16, 32, 112, 64, 3, 2), shape(DType::kF16, 32, 56, 96, 7),
        shape(DType::kBF16, 32, 28, 240, 5), shape(DType::kF16, 1, 7, 960, 5)}) {
    std::vector<std::string> texts;
    const auto all = variants(one, 132);
    for (const Variant& variant : all) texts.push_back(variant.text);
    const auto cubins = codegen::CubinCache("sm_90a").compile_all(texts, 2);
    for (size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(name_of(one) + " " + to_string(all[i].tiling));
      const auto& cubin = cubins[i];
      if (!cubin.ok() && cubin.error().code == ErrorCode::kUnsupported) {
        GTEST_SKIP() << cubin.error().message;
      }
      ASSERT_TRUE(cubin.ok()) << cubin.error().message;
      EXPECT_EQ(cubin->local_bytes + cubin->spilled_bytes, 0u) << cubin->registers;
    }
  }
}

TEST(DepthwiseKernel, LeavesNoMultiprocessorIdle) {
  const auto keys = [](const DepthwiseShape& one, uint32_t multiprocessors) {
    std::string text;
    for (const auto& tiling : depthwise_tilings(one, multiprocessors)) {
      text += to_string(tiling) + " ";
    }
    return text;
  };
  EXPECT_EQ(keys(shape(DType::kF16, 32, 56, 96, 3), 132), "r7.b1 r4.b2 r4.b1 r2.b2 r2.b1 r1.b1 ");
  // 49 results of 120 pieces of channels: 5880 threads at most.
  EXPECT_EQ(keys(shape(DType::kF16, 1, 7, 960, 3), 132), "r1.b1 ");
  // Seven sums and thirteen cells of eight floats are 160 registers, but not twice seven sums.
  EXPECT_EQ(keys(shape(DType::kF16, 32, 4, 96, 7), 1), "r4.b2 r4.b1 r2.b2 r2.b1 r1.b1 ");
}

TEST(DepthwiseKernel, SaysWhatItDoesNotTake) {
  const auto refusal = [](DepthwiseShape one, auto change) {
    change(one);
    const auto checked = check_depthwise(one);
    return checked.ok() ? "" : checked.error().message;
  };
  const DepthwiseShape good = shape(DType::kF16, 2, 14, 16, 3);
  EXPECT_EQ(refusal(good, [](auto&) {}), "");
  EXPECT_EQ(refusal(good, [](auto& s) { s.channels = 12; }), "12 channels are no multiple of 8");
  EXPECT_EQ(refusal(good, [](auto& s) { s.dtype = DType::kF32; }),
            "the operands are f32, f16 or bf16 expected");
  EXPECT_EQ(refusal(good, [](auto& s) { s.window_x = 40; }), "a window of 40 columns is too wide");
  EXPECT_NE(refusal(good, [](auto& s) { s.batch = 0; }), "");
  EXPECT_NE(refusal(good, [](auto& s) { s.pad_x = -1; }), "");
  EXPECT_NE(refusal(good, [](auto& s) { s.batch = int64_t{1} << 40; }), "");
  EXPECT_NE(refusal(good, [](auto& s) { s.stride_y = int64_t{1} << 40; }), "");
}

}  // namespace
}  // namespace kiln
