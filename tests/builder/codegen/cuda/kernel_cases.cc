#include "tests/builder/codegen/cuda/kernel_cases.h"

#include "builder/codegen/cuda/emit_cuda.h"

namespace kiln::codegen {
namespace {

std::string shape(std::string_view dtype, std::initializer_list<int64_t> extents) {
  return to_string(TensorType{*parse_dtype(dtype), Shape(extents)});
}

// What narrow results may differ by: operations one by one round in between.
double tolerance_of(std::string_view dtype) {
  if (dtype == "bf16") return 1.0 / 32;
  return dtype == "f16" ? 1.0 / 256 : 1e-5;
}

Body pointwise(std::string_view dtype, int64_t rows, int64_t columns) {
  Body b;
  const auto x = b.in(shape(dtype, {rows, columns})), bias = b.in(shape(dtype, {columns}));
  const auto s = b.fn(ScalarFn::kAdd, {x, bias});
  b.out(b.fn(ScalarFn::kMul, {s, b.fn(ScalarFn::kErf, {s})}));
  return b;
}

Body layer_norm(std::string_view dtype, int64_t rows, int64_t width) {
  Body b;
  const auto x = b.in(shape(dtype, {rows, width})), r = b.in(shape(dtype, {rows, width}));
  const auto g = b.in(shape(dtype, {width})), h = b.in(shape(dtype, {width}));
  const auto s = b.op(ir::Cast{DType::kF32}, {b.fn(ScalarFn::kAdd, {x, r})});
  const auto scale = b.scalar(1.0f / static_cast<float>(width));
  const auto mean = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, s, {1}), scale});
  const auto centered = b.fn(ScalarFn::kSub, {s, mean});
  const auto square = b.fn(ScalarFn::kMul, {centered, centered});
  const auto variance = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, square, {1}), scale});
  const auto deviation = b.fn(ScalarFn::kSqrt, {b.fn(ScalarFn::kAdd, {variance, b.scalar(1e-5f)})});
  const auto wide = [&](ir::ValueId v) { return b.op(ir::Cast{DType::kF32}, {v}); };
  const auto y = b.fn(ScalarFn::kMul, {b.fn(ScalarFn::kDiv, {centered, deviation}), wide(g)});
  b.out(b.op(ir::Cast{*parse_dtype(dtype)}, {b.fn(ScalarFn::kAdd, {y, wide(h)})}));
  b.out(mean);
  return b;
}

Body softmax(std::string_view type, int64_t axis) {
  Body b;
  b.out(b.softmax(b.in(type), axis));
  return b;
}

Body reduction(ReduceFn fn, std::string_view type, std::vector<int64_t> axes) {
  Body b;
  b.out(b.reduce(fn, b.in(type), std::move(axes), false));
  return b;
}

Body transpose(std::string_view type, std::vector<int64_t> perm) {
  Body b;
  const auto x = b.in(type);
  b.out(b.transpose(b.fn(ScalarFn::kAdd, {x, x}), std::move(perm)));
  return b;
}

Body split_heads() {
  Body b;
  const auto x = b.in("f16[2x7x48]"), bias = b.in("f16[48]");
  const auto y = b.reshape(b.fn(ScalarFn::kAdd, {x, bias}), {2, 7, 3, 16});
  b.out(b.transpose(y, {0, 2, 1, 3}));
  return b;
}

Body views() {
  Body b;
  const auto x = b.in("f32[4x6x8]");
  const auto t = b.transpose(x, {2, 0, 1});
  const auto s = b.op(ir::Slice{{7, 1, 0}, {3, 3, 2}, {-2, 1, 5}}, {t});
  const auto p = b.op(ir::Pad{{1, 0, 2}, {0, 1, 1}}, {s, b.scalar(7.0f)});
  const auto c = b.op(ir::Concat{1}, {p, b.in("f32[4x2x5]"), p});
  b.out(b.fn(ScalarFn::kAdd, {c, b.in("f32[10x1]")}));
  return b;
}

Body concat_rows() {
  Body b;
  b.out(b.op(ir::Concat{1}, {b.in("bf16[5x16]"), b.in("bf16[5x8]"), b.in("bf16[5x24]")}));
  return b;
}

// As DenseNet has it: pieces that are cast, then scaled for each column; and how far they are from
// their largest.
Body concat_of_casts() {
  Body b;
  std::vector<ir::ValueId> pieces;
  for (const char* type : {"f16[6x16]", "f16[6x8]", "f16[6x24]", "f16[6x16]"}) {
    pieces.push_back(b.op(ir::Cast{DType::kF32, true}, {b.in(type)}));
  }
  const auto scaled = b.fn(ScalarFn::kMul, {b.op(ir::Concat{1}, pieces), b.in("f32[64]")});
  b.out(b.op(ir::Cast{DType::kF16, true}, {b.fn(ScalarFn::kTanh, {scaled})}));
  b.out(b.fn(ScalarFn::kSub, {scaled, b.reduce(ReduceFn::kMax, scaled, {1})}));
  return b;
}

// An embedding with positions, normalised.
Body gathered_rows() {
  Body b;
  const auto table = b.in("f16[3x64]"), index = b.in("i64[2x5]"), positions = b.in("f16[5x64]");
  const auto g = b.fn(ScalarFn::kAdd, {b.op(ir::Gather{0}, {table, index}), positions});
  const auto sum = b.reduce(ReduceFn::kSum, b.fn(ScalarFn::kMul, {g, g}), {2});
  b.out(b.fn(ScalarFn::kDiv, {g, b.fn(ScalarFn::kSqrt, {sum})})).out(g);
  return b;
}

Body gathered_columns() {
  Body b;
  b.out(b.op(ir::Gather{1}, {b.in("u8[6x3]"), b.in("i32[32]")}));
  return b;
}

Body group_norm() {
  Body b;
  const auto x = b.in("f32[2x6x4x8]"), scale = b.in("f32[6x1x1]");
  const auto g = b.reshape(x, {2, 3, 64});
  const auto mean = b.fn(ScalarFn::kMul, {b.reduce(ReduceFn::kSum, g, {2}), b.scalar(1 / 64.f)});
  b.out(b.fn(ScalarFn::kMul, {b.reshape(b.fn(ScalarFn::kSub, {g, mean}), {2, 6, 4, 8}), scale}));
  return b;
}

Body cast(std::string_view from, std::string_view to) {
  Body b;
  b.out(b.op(ir::Cast{*parse_dtype(to)}, {b.in(shape(from, {6, 8}))}));
  return b;
}

Body value_beside_its_sum() {
  Body b;
  const auto y = b.fn(ScalarFn::kExp, {b.in("f32[33x16]")});
  b.out(y).out(b.reduce(ReduceFn::kSum, y, {0}, false));
  return b;
}

Body arg_max_gather() {
  // The reduced value is an index: the row that has the largest number.
  Body b;
  const auto x = b.in("i64[5x40]"), table = b.in("f32[2x40]");
  const auto index = b.reduce(ReduceFn::kMax, x, {1}, false);
  b.out(b.op(ir::Gather{0}, {table, index}));
  return b;
}

void add_reductions(std::vector<KernelCase>& cases) {
  using enum ReduceFn;
  for (const ReduceFn fn : {kSum, kProd, kMax, kMin}) {
    const std::string name(to_string(fn));
    cases.push_back({name + " of rows", reduction(fn, "f32[3x160]", {1})});
    cases.push_back({name + " of columns", reduction(fn, "f32[40x12]", {0})});
    cases.push_back({name + " of bytes", reduction(fn, "u8[5x33]", {1})});
    cases.push_back({name + " of i64", reduction(fn, "i64[4x64]", {1})});
    cases.push_back({name + " of doubles", reduction(fn, "f64[70x2]", {0})});
    cases.push_back({name + " of nothing", reduction(fn, "i16[3x0x2]", {1})});
  }
  cases.push_back({"sum of a long row", reduction(kSum, "f16[2x16384]", {1}), 1.0 / 256});
  cases.push_back({"largest of all", reduction(kMax, "i32[64x300]", {0, 1})});
  cases.push_back({"long layer norm", layer_norm("bf16", 1, 18432), tolerance_of("bf16")});
  cases.push_back({"softmax of rows for clusters", softmax("bf16[3x8192]", 1), 1.0 / 64});
  cases.push_back({"norm of odd rows for clusters", layer_norm("f16", 2, 8200), 1.0 / 64});
  cases.push_back({"largest of clusters", reduction(kMax, "f64[2x4096]", {1})});
  cases.push_back({"sum of all", reduction(kSum, "f32[3x40x5]", {0, 1, 2})});
  cases.push_back({"sum of outer and inner", reduction(kSum, "f32[6x4x32]", {0, 2})});
  cases.push_back({"any", reduction(kAny, "bool[20x64]", {1})});
  cases.push_back({"all", reduction(kAll, "bool[64x20]", {0})});
}

}  // namespace

std::vector<CudaSchedule> all_schedules(const loop::LoopKernel& kernel) {
  std::vector<CudaSchedule> all = cuda_schedules(kernel, {});
  const size_t timed = all.size();
  for (size_t i = 0; i < timed; ++i) {
    CudaSchedule stream = all[i];
    stream.stream = true;
    if (!emit_cuda(kernel, stream).ok()) continue;
    all.push_back(stream);
    break;
  }
  if (all.front() != CudaSchedule{}) all.emplace_back();
  return all;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    const double tolerance = tolerance_of(dtype);
    const std::string name(dtype);
    cases.push_back({"pointwise " + name, pointwise(dtype, 12, 64), tolerance});
    cases.push_back({"odd pointwise " + name, pointwise(dtype, 3, 37), tolerance});
    cases.push_back({"layer norm " + name, layer_norm(dtype, 5, 384), 2 * tolerance + 1e-5});
    cases.push_back({"odd layer norm " + name, layer_norm(dtype, 3, 77), 2 * tolerance + 1e-5});
  }
  cases.push_back({"softmax of rows", softmax("f32[3x4x520]", 2)});
  cases.push_back({"softmax of narrow rows", softmax("bf16[7x16]", 1), tolerance_of("bf16")});
  cases.push_back({"softmax of odd rows", softmax("f16[2x1001]", 1), tolerance_of("f16")});
  cases.push_back({"softmax of columns", softmax("f32[2x70x12]", 1)});
  cases.push_back({"softmax of long rows", softmax("f32[1x20000]", 1)});
  cases.push_back({"transpose", transpose("f32[40x24]", {1, 0})});
  cases.push_back({"transpose of batches", transpose("f16[3x20x36]", {0, 2, 1})});
  cases.push_back({"transpose of pairs", transpose("bf16[72x136]", {1, 0}), tolerance_of("bf16")});
  cases.push_back({"transpose of odd batches", transpose("f16[2x34x2x30]", {0, 3, 2, 1})});
  cases.push_back({"transpose of blocks", transpose("u8[4x6x8x3]", {0, 3, 1, 2})});
  cases.push_back({"split heads", split_heads(), tolerance_of("f16")});
  cases.push_back({"views", views()});
  cases.push_back({"concat of rows", concat_rows()});
  cases.push_back({"concat of casts", concat_of_casts(), tolerance_of("f16")});
  cases.push_back({"gathered rows", gathered_rows(), tolerance_of("f16")});
  cases.push_back({"gathered columns", gathered_columns()});
  cases.push_back({"group norm", group_norm()});
  cases.push_back({"value beside its sum", value_beside_its_sum()});
  cases.push_back({"gather by a reduced value", arg_max_gather()});
  for (const char* to : {"i4", "u4", "i8", "bool", "f8e4m3fn", "f64", "i64", "f16"}) {
    cases.push_back({"f32 to " + std::string(to), cast("f32", to), 0});
  }
  for (const char* from : {"u4", "i4", "i64", "bool", "f8e5m2", "u64"}) {
    cases.push_back({std::string(from) + " to f32", cast(from, "f32"), 0});
  }
  Body odd;
  odd.out(odd.op(ir::Cast{DType::kU4}, {odd.in("f32[3x11]")}));
  cases.push_back({"an odd number of half bytes", std::move(odd), 0});
  Body scalar;
  scalar.out(scalar.fn(ScalarFn::kExp, {scalar.in("f32[]")}));
  cases.push_back({"scalar", std::move(scalar)});
  Body empty;
  empty.out(empty.fn(ScalarFn::kAdd, {empty.in("f32[0x3]"), empty.in("f32[3]")}));
  cases.push_back({"empty", std::move(empty)});
  add_reductions(cases);
  return cases;
}

}  // namespace kiln::codegen
