// oneDNN's kernels against direct loops and against the plain kernels, which share no code.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

HostTensor noise(Shape shape, uint32_t seed) {
  std::vector<float> values(element_count(shape));
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return f32(std::move(shape), values);
}

// Prepares once with input 1 constant, then runs.
struct Prepared {
  std::unique_ptr<HostKernel> kernel;
  TensorType out;

  Prepared(std::string_view text, const std::vector<HostTensor>& inputs, bool constant) {
    std::vector<TensorType> types;
    std::vector<HostInput> in;
    for (const HostTensor& t : inputs) {
      types.push_back(t.type);
      in.push_back({t.type, in.size() == 1 && constant ? t.bytes.data() : nullptr});
    }
    const auto outputs = infer_host_operation(operation(text), types);
    if (!outputs.ok()) throw std::runtime_error(outputs.error().message);
    out = outputs->front();
    auto result = host_kernels().prepare(operation(text), in, *outputs);
    if (!result.ok()) throw std::runtime_error(result.error().message);
    kernel = *std::move(result);
  }

  HostTensor run(const std::vector<HostTensor>& inputs) const {
    HostTensor result{out, std::vector<std::byte>(out.bytes(), std::byte{0xA5})};
    std::vector<std::byte> workspace(kernel->workspace_bytes() + 64);
    void* base = workspace.data();
    size_t space = workspace.size();
    std::align(64, kernel->workspace_bytes(), base, space);
    std::vector<const void*> in;
    for (const HostTensor& t : inputs) in.push_back(t.bytes.data());
    void* outputs[] = {result.bytes.data()};
    const auto status = kernel->run(in, outputs, base);
    if (!status.ok()) throw std::runtime_error(status.error().message);
    return result;
  }
};

void expect_close(const HostTensor& found, const HostTensor& expected, float tolerance = 1e-4F) {
  ASSERT_EQ(found.type, expected.type);
  const auto a = found.values<float>(), b = expected.values<float>();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(OnednnMatMul, AddsBiasActivationAndResidual) {
  const int64_t m = 5, n = 33, k = 70;
  const auto a = noise({1, m, k}, 1), b = noise({n, k}, 2), bias = noise({n}, 3);
  const auto residual = noise({1, m, n}, 4);
  const auto av = a.values<float>(), bv = b.values<float>(), cv = bias.values<float>();
  const auto rv = residual.values<float>();
  std::vector<float> expected(m * n);
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = cv[i % n];
    for (int64_t p = 0; p < k; ++p) {
      sum += static_cast<double>(av[i / n * k + p]) * bv[i % n * k + p];
    }
    expected[i] = static_cast<float>(sum * 0.5 * (1 + std::erf(sum * std::sqrt(0.5))) + rv[i]);
  }
  const std::vector<HostTensor> inputs{a, b, bias, residual};
  for (const bool constant : {false, true}) {
    const Prepared kernel(
        "onednn.matmul{post_ops=[\"bias\", \"gelu_erf\", \"add\"], transpose_a=0, transpose_b=1}",
        inputs, constant);
    expect_close(kernel.run(inputs), f32({1, m, n}, expected));
  }
}

TEST(OnednnMatMul, BroadcastsLeadingAxes) {
  const std::vector<HostTensor> inputs{noise({2, 3, 4, 5}, 1), noise({3, 5, 6}, 2)};
  const Prepared kernel("onednn.matmul{post_ops=strings[], transpose_a=0, transpose_b=0}", inputs,
                        false);
  expect_close(kernel.run(inputs), run("matmul{transpose_a=0, transpose_b=0}", inputs));
}

TEST(OnednnMatMul, HalfIsComputedInSinglePrecision) {
  const std::vector<uint16_t> ones(4096, 0x3C00);
  const std::vector<HostTensor> inputs{tensor(DType::kF16, {1, 4096}, ones),
                                       tensor(DType::kF16, {4096, 1}, ones)};
  for (const bool constant : {false, true}) {
    const Prepared kernel("onednn.matmul{post_ops=strings[], transpose_a=0, transpose_b=0}", inputs,
                          constant);
    EXPECT_EQ(kernel.run(inputs).values<uint16_t>(), (std::vector<uint16_t>{0x6C00}));
  }
}

TEST(OnednnMatMul, ThreadsShareOneKernel) {
  const std::vector<HostTensor> inputs{noise({64, 64}, 1), noise({64, 64}, 2)};
  const Prepared kernel("onednn.matmul{post_ops=strings[], transpose_a=0, transpose_b=0}", inputs,
                        true);
  const auto expected = kernel.run(inputs).values<float>();
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) wrong[t] += kernel.run(inputs).values<float>() != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(OnednnMatMul, RefusesWithAReason) {
  EXPECT_EQ(error_of("onednn.matmul{post_ops=[\"sine\"], transpose_a=0, transpose_b=0}",
                     {ramp({2, 2}), ramp({2, 2})}),
            "onednn.matmul: there is no post-op 'sine'");
  EXPECT_EQ(error_of("onednn.matmul{post_ops=[\"bias\"], transpose_a=0, transpose_b=0}",
                     {ramp({2, 2}), ramp({2, 2})}),
            "onednn.matmul: found 2 inputs, expected 3");
  EXPECT_EQ(error_of("onednn.matmul{post_ops=strings[], transpose_a=0, transpose_b=0}",
                     {i32({1, 1}, {1}), i32({1, 1}, {1})}),
            "onednn.matmul: result is i32[1x1], expected f32 or a narrower float");
}

TEST(OnednnConv, EqualsThePlainKernel) {
  struct Case {
    int64_t channels, out, groups;
    std::string window;
  };
  const Case cases[] = {
      {16, 32, 1, "pads_begin=[1, 1], pads_end=[1, 1], strides=[1, 1]"},
      {6, 4, 2, "pads_begin=[0, 2], pads_end=[1, 0], strides=[2, 1]"},
      {32, 32, 32, "pads_begin=[1, 1], pads_end=[1, 1], strides=[2, 2]"},
  };
  int compared = 0;
  for (const Case& c : cases) {
    const std::string common = "dilations=[1, 1], groups=" + std::to_string(c.groups) + ", ";
    const auto x = noise({2, c.channels, 13, 14}, 1);
    const auto w = noise({c.out, c.channels / c.groups, 3, 3}, 2), bias = noise({c.out}, 3);
    const auto plain = run("conv{" + common + c.window + "}", {x, w, bias});
    const auto relu = run("max", {plain, f32({}, {0})});
    const auto sum = run("add", {relu, plain});
    for (const std::string options : {"00", "01", "10", "11"}) {
      const bool add = options[1] == '1';
      const std::string text = "onednn.conv{blocked=" + options.substr(0, 1) + ", " + common +
                               "post_ops=[\"bias\", \"relu\"" + (add ? ", \"add\"" : "") + "], " +
                               c.window + "}";
      const std::vector<HostTensor> inputs =
          add ? std::vector{x, w, bias, plain} : std::vector{x, w, bias};
      for (const bool constant : {false, true}) {
        try {
          expect_close(Prepared(text, inputs, constant).run(inputs), add ? sum : relu);
          ++compared;
        } catch (const std::exception& error) {
          // Which fast implementations there are depends on the processor and on oneDNN's version.
          EXPECT_NE(std::string(error.what()).find("slow implementation"), std::string::npos)
              << error.what();
        }
      }
    }
  }
  EXPECT_GE(compared, 4);
}

TEST(OnednnConvTranspose, EqualsThePlainKernel) {
  for (const std::string groups : {"1", "2"}) {
    const auto x = noise({1, 8, 6, 7}, 1), w = noise({8, 6, 3, 2}, 2);
    const std::string window = "dilations=[1, 2], groups=" + groups +
                               ", output_padding=[1, 0], pads_begin=[1, 0], pads_end=[1, 1], ";
    const auto plain = run("conv_transpose{" + window + "strides=[2, 1]}", {x, w});
    const Prepared kernel("onednn.conv_transpose{" + window + "post_ops=strings[], strides=[2, 1]}",
                          {x, w}, true);
    expect_close(kernel.run({x, w}), plain);
  }
}

}  // namespace
}  // namespace kiln::testing
