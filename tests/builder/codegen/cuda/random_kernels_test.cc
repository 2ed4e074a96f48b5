// Random loop kernels, well beyond what models lower to: any kernel that passes verify() is
// accepted by its schedules, stays within its buffers, and computes what the interpreter computes.
#include <gtest/gtest.h>

#include <random>

#include "builder/codegen/cuda/emit_cuda.h"
#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/scalar_type.h"
#include "tests/builder/codegen/cuda/kernel_cases.h"
#include "tests/builder/codegen/cuda/run_on_host.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using loop::LoopKernel;
using Kind = Expr::Kind;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}

  LoopKernel make() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 8, 8, 16, 32, 0};
    for (int d = pick(5); d > 0; --d) {
      kernel_.dims.push_back({kExtents[pick(kernel_.dims.empty() ? 10 : 9)], pick(3) == 0});
    }
    for (int i = 1 + pick(3); i > 0; --i) load(static_cast<DType>(pick(kDTypeCount)), false);
    for (int i = pick(8); i > 0; --i) step();
    store();
    return kernel_;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  ExprId add(Expr e) {
    kernel_.exprs.push_back(std::move(e));
    return static_cast<ExprId>(kernel_.exprs.size() - 1);
  }
  ExprId any() { return static_cast<ExprId>(pick(static_cast<int>(kernel_.exprs.size()))); }

  IndexMap random_map() {
    static constexpr int64_t kDivisors[] = {1, 1, 1, 2, 3, 4, 8};
    static constexpr int64_t kModuli[] = {0, 0, 0, 2, 4, 5, 8};
    static constexpr int64_t kStrides[] = {1, 1, 2, 4, 8, 16, 3, -1, -4};
    IndexMap map;
    for (uint32_t d = 0; d < kernel_.dims.size(); ++d) {
      if (pick(3) == 0) continue;
      map.terms.push_back({d, kDivisors[pick(7)], kModuli[pick(7)], kStrides[pick(9)]});
    }
    map.offset = pick(3) == 0 ? pick(9) - 4 : 0;
    return map;
  }

  // Reads all of a buffer of its own that the map can reach; bounds narrow it at random.
  void load(DType dtype, bool bounded) {
    Expr e{.kind = Kind::kLoad, .dtype = dtype};
    e.map = random_map();
    auto range = loop::range_of(e.map, kernel_).value();
    if (bounded && !e.map.terms.empty()) {
      const int64_t low = range.low + pick(4), high = range.high - pick(4);
      e.bounds.push_back({e.map, low, high + 1});
      range = {std::max(low, range.low), std::max(high, low)};
    }
    e.map.offset -= range.low;
    int64_t elements = range.high - range.low + 1;
    const ExprId index = kernel_.exprs.empty() ? 0 : any();
    if (!bounded && !kernel_.exprs.empty() && is_integer(kernel_.exprs[index].dtype) && pick(2)) {
      // Random inputs are 0 or 1 where integers index.
      e.map.gathers.push_back({index, 2, elements});
      elements *= 2;
    }
    e.buffer = static_cast<uint32_t>(kernel_.buffers.size());
    kernel_.buffers.push_back({dtype, elements, false});
    add(std::move(e));
  }

  void step() {
    const ExprId x = any(), y = any();
    const DType dtype = kernel_.exprs[x].dtype;
    Expr e{.kind = Kind::kApply, .dtype = dtype};
    switch (pick(6)) {
      case 0:
        return load(static_cast<DType>(pick(kDTypeCount)), true);
      case 1: {
        e.kind = Kind::kReduce;
        const bool logical = dtype == DType::kBool;
        e.reduce_fn = static_cast<ReduceFn>(logical ? 4 + pick(2) : (pick(2) ? 0 : 2 + pick(2)));
        break;
      }
      case 2:
        e.kind = Kind::kCast;
        e.dtype = is_float(dtype) ? DType::kF32 : static_cast<DType>(pick(kDTypeCount));
        break;
      case 3:
        e.kind = Kind::kIota;
        e.dtype = pick(2) ? DType::kI64 : DType::kI32;
        e.map = random_map();
        add(std::move(e));
        return;
      default: {
        constexpr ScalarFn kFns[] = {ScalarFn::kAdd, ScalarFn::kSub, ScalarFn::kMul,
                                     ScalarFn::kMax, ScalarFn::kMin, ScalarFn::kXor};
        e.fn = dtype == DType::kBool ? ScalarFn::kXor : kFns[pick(5)];
        e.args = {x, kernel_.exprs[y].dtype == dtype ? y : x};
        add(std::move(e));
        return;
      }
    }
    e.args = {x};
    add(std::move(e));
  }

  // The last value, at every point that it varies with at least.
  void store() {
    const auto value = static_cast<ExprId>(kernel_.exprs.size() - 1);
    const loop::DimSet reduced = loop::reduced_dims(kernel_);
    const bool everywhere = (loop::varying_dims(kernel_)[value] & reduced) != 0;
    Expr e{.kind = Kind::kStore, .dtype = kernel_.exprs[value].dtype};
    e.args = {value};
    int64_t points = 1;
    for (auto d = static_cast<uint32_t>(kernel_.dims.size()); d-- > 0;) {
      if (kernel_.dims[d].reduced && !everywhere) continue;
      e.map.terms.push_back({d, 1, 0, std::max<int64_t>(points, 1)});
      points *= kernel_.dims[d].extent;
    }
    e.buffer = static_cast<uint32_t>(kernel_.buffers.size());
    kernel_.buffers.push_back({e.dtype, points, true});
    add(std::move(e));
  }

  std::mt19937 random_;
  LoopKernel kernel_;
};

TEST(RandomKernels, AreTakenByTheirSchedulesAndComputeWhatTheInterpreterDoes) {
  constexpr uint32_t kKernels = 300;
  std::vector<HostProgram::Item> items;
  std::vector<std::string> names;
  uint32_t sound = 0;
  for (uint32_t seed = 0; seed < kKernels; ++seed) {
    const LoopKernel kernel = RandomKernel(seed).make();
    if (!loop::verify(kernel).ok()) continue;
    ++sound;
    std::vector<CudaSchedule> schedules = all_schedules(kernel);
    if (schedules.size() > 4) schedules.erase(schedules.begin() + 2, schedules.end() - 2);
    for (const CudaSchedule& schedule : schedules) {
      auto source = emit_cuda(kernel, schedule);
      ASSERT_TRUE(source.ok()) << source.error().message << "\n" << loop::to_text(kernel);
      items.push_back({kernel, *std::move(source)});
      names.push_back("seed " + std::to_string(seed) + ", " + to_text(schedule) + "\n" +
                      loop::to_text(kernel));
    }
  }
  EXPECT_GT(sound, kKernels / 2) << "the test says little";
  const auto program = HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  uint32_t compared = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    std::mt19937 random(static_cast<uint32_t>(i));
    std::vector<Bytes> inputs;
    for (const loop::Buffer& buffer : items[i].kernel.buffers) {
      if (!buffer.output) {
        inputs.push_back(random_bytes({buffer.dtype, {buffer.elements}}, 0, 1, random));
      }
    }
    const auto want = interpret(items[i].kernel, inputs);
    const auto got = program->run(i, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message << " in " << names[i] << items[i].source.text;
    if (!want.ok()) continue;  // an index out of range, which only the interpreter refuses
    ++compared;
    const DType dtype = items[i].kernel.buffers.back().dtype;
    const double tolerance = is_float(dtype) && bits_of(dtype) < 32 ? 0.3 : 1e-3;
    EXPECT_EQ(difference(dtype, got->front(), want->front(), tolerance), "")
        << names[i] << items[i].source.text;
  }
  EXPECT_GT(compared, items.size() / 2);
}

}  // namespace
}  // namespace kiln::codegen
