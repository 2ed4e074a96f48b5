#include "engine/host/loop/prepare_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/host/loop/worker.h"
#include "tests/formats/loop_ir/exprs.h"

namespace kiln::host {
namespace {

using loop::Expr;
using loop::IndexMap;
using loop::LoopKernel;

using namespace loop::test;

// softmax over the last of rows x width.
LoopKernel softmax(int64_t rows, int64_t width) {
  LoopKernel kernel;
  kernel.dims = {{rows, false}, {width, true}};
  kernel.buffers = {{DType::kF32, rows * width, false}, {DType::kF32, rows * width, true}};
  const IndexMap map = affine({{0, width}, {1, 1}});
  kernel.exprs = {load(0, map),
                  reduce(ReduceFn::kMax, 0),
                  apply(ScalarFn::kSub, {0, 1}),
                  apply(ScalarFn::kExp, {2}),
                  reduce(ReduceFn::kSum, 3),
                  apply(ScalarFn::kDiv, {3, 4}),
                  store(1, 5, map)};
  return kernel;
}

std::vector<float> ramp(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) * 0.1f - 5.0f;
  return x;
}

struct Memory {
  explicit Memory(uint64_t bytes) : size((bytes + 63) / 64 * 64 + 64) {
    data = std::aligned_alloc(64, size);
    std::memset(data, 0xA5, size);
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  size_t size;
  void* data;
};

Result<> run(const HostKernel& kernel, std::vector<const void*> inputs,
             std::vector<void*> outputs) {
  const Memory workspace(kernel.workspace_bytes());
  return kernel.run(inputs, outputs, workspace.data);
}

TensorType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }

TEST(LoopInterpreter, SoftmaxOfRowsOfEveryLength) {
  for (const int64_t width : {1, 5, 31, 33, 700, 4096, 4097, 10000}) {
    const std::vector<float> x = ramp(3 * width);
    std::vector<float> y(x.size(), -1.0f);
    const auto kernel = prepare_loop_kernel(softmax(3, width), std::vector{f32({3, width})},
                                            std::vector{f32({3, width})});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    ASSERT_TRUE(run(**kernel, {x.data()}, {y.data()}).ok());
    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::exp(x[r * width + i]);
      for (int64_t i = 0; i < width; ++i) {
        ASSERT_NEAR(y[r * width + i], std::exp(x[r * width + i]) / sum, 1e-6) << width << " " << i;
      }
    }
  }
}

TEST(LoopInterpreter, ResultsDoNotDependOnHowTasksAreShared) {
  const Program program = make_program(softmax(37, 900));
  const std::vector<float> x = ramp(37 * 900);
  std::vector<float> whole(x.size()), shared(x.size());
  const auto run_parts = [&](std::vector<float>& y, std::vector<int64_t> cuts) {
    for (size_t p = 0; p + 1 < cuts.size(); ++p) {
      const Memory memory(program.worker_bytes);
      void* buffers[] = {const_cast<float*>(x.data()), y.data()};
      Worker worker(program, buffers, static_cast<std::byte*>(memory.data), true);
      EXPECT_EQ(worker.run(cuts[p], cuts[p + 1]), std::nullopt);
    }
  };
  const int64_t tasks = Worker::task_count(program);
  run_parts(whole, {0, tasks});
  run_parts(shared, {0, 1, tasks / 3, tasks / 2, tasks});
  EXPECT_EQ(std::memcmp(whole.data(), shared.data(), whole.size() * sizeof(float)), 0);
}

TEST(LoopInterpreter, OutputMayLieInTheInput) {
  for (const int64_t width : {40, 5000}) {
    const auto kernel = prepare_loop_kernel(softmax(8, width), std::vector{f32({8, width})},
                                            std::vector{f32({8, width})});
    ASSERT_TRUE(kernel.ok());
    ASSERT_TRUE((*kernel)->in_place(0));
    std::vector<float> x = ramp(8 * width), y(x.size());
    ASSERT_TRUE(run(**kernel, {x.data()}, {y.data()}).ok());
    ASSERT_TRUE(run(**kernel, {x.data()}, {x.data()}).ok());
    EXPECT_EQ(x, y);
  }
}

TEST(LoopInterpreter, InPlaceIsRefusedWhereRowsAreReadAgain) {
  LoopKernel kernel = softmax(2, 9000);
  kernel.buffers.push_back(kernel.buffers.back());
  kernel.exprs.push_back(store(2, 5, kernel.exprs.back().map));
  kernel.exprs[6].args = {0};  // the first output is there before the last row is read
  const TensorType type = f32({2, 9000});
  const auto made = prepare_loop_kernel(kernel, std::vector{type}, std::vector{type, type});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE((*made)->in_place(0));
}

TEST(LoopInterpreter, InPlaceIsRefusedWhereElementsMove) {
  LoopKernel transpose;
  transpose.dims = {{3, false}, {3, false}};
  transpose.buffers = {{DType::kF32, 9, false}, {DType::kF32, 9, true}};
  transpose.exprs = {load(0, affine({{0, 1}, {1, 3}})), store(1, 0, affine({{0, 3}, {1, 1}}))};
  const auto kernel =
      prepare_loop_kernel(transpose, std::vector{f32({3, 3})}, std::vector{f32({3, 3})});
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE((*kernel)->in_place(0));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> y(9);
  ASSERT_TRUE(run(**kernel, {x.data()}, {y.data()}).ok());
  EXPECT_EQ(y, (std::vector<float>{1, 4, 7, 2, 5, 8, 3, 6, 9}));
}

TEST(LoopInterpreter, MapsWithDivisionsAndBounds) {
  LoopKernel kernel;  // y[i] = x[(i / 2) % 3] for 3 <= i < 9, else 7
  kernel.dims = {{12, false}};
  kernel.buffers = {{DType::kF32, 3, false}, {DType::kF32, 12, true}};
  Expr value = load(0, IndexMap{0, {{0, 2, 3, 1}}, {}});
  value.bounds = {{affine({{0, 1}}), 3, 9}};
  const float fill = 7;
  std::memcpy(&value.constant, &fill, 4);
  kernel.exprs = {value, store(1, 0, affine({{0, 1}}))};
  const auto made = prepare_loop_kernel(kernel, std::vector{f32({3})}, std::vector{f32({12})});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const std::vector<float> x = {10, 20, 30};
  std::vector<float> y(12);
  ASSERT_TRUE(run(**made, {x.data()}, {y.data()}).ok());
  EXPECT_EQ(y, (std::vector<float>{7, 7, 7, 20, 30, 30, 10, 10, 20, 7, 7, 7}));
}

TEST(LoopInterpreter, StridedBoundsInBothDirections) {
  for (const int64_t step : {3, -3}) {
    LoopKernel kernel;  // y[i] = x[step * i + start] where that lies in x
    kernel.dims = {{10, false}};
    kernel.buffers = {{DType::kF32, 8, false}, {DType::kF32, 10, true}};
    const IndexMap map = affine({{0, step}}, step > 0 ? -7 : 17);
    Expr value = load(0, map);
    value.bounds = {{map, 0, 8}};
    kernel.exprs = {value, store(1, 0, affine({{0, 1}}))};
    const auto made = prepare_loop_kernel(kernel, std::vector{f32({8})}, std::vector{f32({10})});
    ASSERT_TRUE(made.ok()) << made.error().message;
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> y(10, -1);
    ASSERT_TRUE(run(**made, {x.data()}, {y.data()}).ok());
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t at = step * i + map.offset;
      EXPECT_EQ(y[i], at >= 0 && at < 8 ? x[at] : 0.0f) << i;
    }
  }
}

TEST(LoopInterpreter, OperandsMustFit) {
  const auto kernel = softmax(3, 5);
  const auto count = prepare_loop_kernel(kernel, std::vector{f32({15})}, {});
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().message, "loop: the kernel has 2 buffers, found 1 operands");
  const auto dtype = prepare_loop_kernel(kernel, std::vector{TensorType{DType::kF16, {15}}},
                                         std::vector{f32({15})});
  ASSERT_FALSE(dtype.ok());
  EXPECT_EQ(dtype.error().message,
            "loop: operand 0 is f16[15], the kernel expects 15 elements of f32");
  EXPECT_FALSE(prepare_loop_kernel(kernel, std::vector{f32({16})}, std::vector{f32({15})}).ok());
}

TEST(LoopInterpreter, FourBitOutputsLeaveNoGarbage) {
  LoopKernel kernel;
  kernel.dims = {{3, false}};
  kernel.buffers = {{DType::kI4, 3, false}, {DType::kI4, 3, true}};
  Expr value = load(0, affine({{0, 1}}));
  value.dtype = DType::kI4;
  Expr to = store(1, 0, affine({{0, 1}}));
  to.dtype = DType::kI4;
  kernel.exprs = {value, to};
  const TensorType type{DType::kI4, {3}};
  const auto made = prepare_loop_kernel(kernel, std::vector{type}, std::vector{type});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const uint8_t x[] = {0x87, 0xF2};
  uint8_t y[] = {0xFF, 0xFF};
  ASSERT_TRUE(run(**made, {x}, {y}).ok());
  EXPECT_EQ(y[0], 0x87);
  EXPECT_EQ(y[1], 0x02);
}

}  // namespace
}  // namespace kiln::host
