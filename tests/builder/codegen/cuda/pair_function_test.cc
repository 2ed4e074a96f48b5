// Functions of two neighbouring elements: their text as host C++ against the interpreter, and what
// they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "builder/codegen/cuda/cuda_text.h"
#include "builder/codegen/cuda/point_function.h"
#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/body.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/random_tensors.h"

namespace kiln::codegen {
namespace {

constexpr int64_t kRows = 6, kColumns = 40;

struct Case {
  std::string name;
  Body body;  // input 0 is the product
  std::optional<uint32_t> residual;
  uint32_t parts = 1;
};

std::vector<Case> cases() {
  std::vector<Case> all(9);
  {
    Case& one = all[0];
    one.name = "bias and gelu";
    Body& b = one.body;
    const auto x = b.fn(ScalarFn::kAdd, {b.in("bf16[6x40]"), b.in("bf16[40]")});
    const auto wide = b.op(ir::Cast{DType::kF32}, {x});
    const auto erf = b.fn(ScalarFn::kErf, {b.fn(ScalarFn::kMul, {wide, b.scalar(0.70710678f)})});
    const auto one_plus = b.fn(ScalarFn::kAdd, {erf, b.scalar(1.0f)});
    const auto half = b.fn(ScalarFn::kMul, {wide, b.scalar(0.5f)});
    b.out(b.op(ir::Cast{DType::kBF16}, {b.fn(ScalarFn::kMul, {half, one_plus})}));
  }
  {
    Case& one = all[1];
    one.name = "bias and residual";
    one.residual = 2;
    Body& b = one.body;
    const auto x = b.in("f16[6x40]"), bias = b.in("f16[40]"), residual = b.in("f16[6x40]");
    b.out(b.fn(ScalarFn::kAdd, {b.fn(ScalarFn::kAdd, {x, bias}), residual}));
  }
  {
    Case& one = all[2];
    one.name = "residual alone";
    one.residual = 1;
    Body& b = one.body;
    b.out(b.fn(ScalarFn::kMul, {b.in("f16[2x3x40]"), b.in("f16[2x3x40]")}));
  }
  {
    Case& one = all[3];
    one.name = "factors of rows, and heads";
    Body& b = one.body;
    const auto x = b.fn(ScalarFn::kMul, {b.in("f16[2x3x40]"), b.in("f16[3x1]")});
    b.out(b.fn(ScalarFn::kAdd, {b.reshape(x, {2, 3, 5, 8}), b.in("f16[5x1]")}));
  }
  {
    Case& one = all[4];
    one.name = "residual in f32";  // read as it lies
    Body& b = one.body;
    const auto x = b.op(ir::Cast{DType::kF32}, {b.in("bf16[6x40]")});
    b.out(b.op(ir::Cast{DType::kBF16}, {b.fn(ScalarFn::kAdd, {x, b.in("f32[6x40]")})}));
  }
  {
    Case& one = all[5];
    one.name = "gate and up";
    one.parts = 2;
    Body& b = one.body;
    const auto x = b.op(ir::Cast{DType::kF32}, {b.in("bf16[2x3x80]")});
    b.out(b.op(ir::Cast{DType::kBF16}, {b.swiglu(x)}));
  }
  {
    Case& one = all[6];
    one.name = "gate and up with a bias of each, and a residual";
    one.residual = 2;
    one.parts = 2;
    Body& b = one.body;
    const auto x = b.fn(ScalarFn::kAdd, {b.in("f16[6x80]"), b.in("f16[80]")});
    const auto gate = b.fn(ScalarFn::kTanh, {b.half(x, 0)});
    b.out(b.fn(ScalarFn::kAdd, {b.fn(ScalarFn::kMul, {b.half(x, 1), gate}), b.in("f16[6x40]")}));
  }
  {
    Case& one = all[7];
    one.name = "f32 as it is, and a residual that is read where it lies";
    Body& b = one.body;
    b.out(b.fn(ScalarFn::kMul, {b.in("f32[6x40]"), b.in("f32[6x40]")}));
  }
  {
    Case& one = all[8];
    one.name = "quantised";
    Body& b = one.body;
    const auto scaled = b.fn(ScalarFn::kMul, {b.in("f32[6x40]"), b.in("f32[40]")});
    b.out(b.op(ir::Cast{DType::kF8E4M3FN}, {b.fn(ScalarFn::kMul, {scaled, b.scalar(600.0f)})}));
  }
  return all;
}

// A kernel that finishes all pairs, one after the other.
std::string text_of(const loop::LoopKernel& kernel, const PairFunction& finish) {
  const std::string type(element_type(kernel.buffers[0].dtype));
  const std::string result = "b" + std::to_string(kernel.buffers.size() - 1);
  const std::string at = "row * " + std::to_string(kColumns) + " + column";
  std::string elements;
  for (uint32_t part = 0; part < finish.parts; ++part) {
    const std::string first = "row * " + std::to_string(kColumns * finish.parts) + " + " +
                              std::to_string(kColumns * part) + " + column";
    elements +=
        "{{read<" + type + ">(b0, " + first + "), read<" + type + ">(b0, " + first + " + 1)}}, ";
  }
  const std::string residual =
      finish.residual
          ? "load<" + type + ", 2>(b" + std::to_string(*finish.residual) + ", at).words[0]"
          : "0";
  return finish.text + "KILN_KERNEL(1)\npairs(const void* b0, " + finish.parameters +
         ") {\n  const Operands operands{" + finish.arguments + "};\n  for (int row = 0; row < " +
         std::to_string(kRows) + "; ++row) {\n    for (int column = 0; column < " +
         std::to_string(kColumns) + "; column += 2) {\n      const int at = " + at +
         ";\n      const Elements elements[] = {" + elements +
         "};\n      auto made = finish(operands, elements, " + residual +
         ", row, column);\n      store(" + result + ", at, made);\n    }\n  }\n}\n";
}

TEST(PairFunction, FinishesTwoElements) {
  std::vector<HostProgram::Item> items;
  const auto all = cases();
  for (const Case& one : all) {
    SCOPED_TRACE(one.name);
    const auto kernel = lower_to_loop(one.body.graph);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const auto finish = pair_function(*kernel, 0, one.parts * kColumns);
    ASSERT_TRUE(finish.ok()) << finish.error().message;
    EXPECT_EQ(finish->residual, one.residual);
    EXPECT_EQ(finish->parts, one.parts);
    items.push_back({*kernel, {text_of(*kernel, *finish), {{"pairs", 1, 1}}, 0}});
  }
  const auto program = HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  std::mt19937 random(5);
  for (size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    std::vector<Bytes> inputs;
    for (const ir::ValueId id : all[i].body.graph.inputs()) {
      const HostTensor tensor = test::random_tensor(all[i].body.graph.type(id), random);
      inputs.emplace_back(tensor.bytes.data(), tensor.bytes.data() + tensor.bytes.size());
    }
    const auto found = program->run(i, inputs);
    ASSERT_TRUE(found.ok()) << found.error().message;
    const auto want = interpret(items[i].kernel, inputs);
    ASSERT_TRUE(want.ok()) << want.error().message;
    const TensorType type{items[i].kernel.buffers.back().dtype, {kRows * kColumns}};
    const auto a = test::to_doubles({type, SharedBytes::take(Bytes((*found)[0]))});
    const auto b = test::to_doubles({type, SharedBytes::take(Bytes((*want)[0]))});
    // The product's sum is not rounded before what follows it; here it is of 16 bits already.
    const double ulp = type.dtype == DType::kF16    ? 0x1p-10
                       : type.dtype == DType::kBF16 ? 0x1p-7
                       : type.dtype == DType::kF32  ? 0x1p-22
                                                    : 0;
    for (size_t e = 0; e < b.size(); ++e) {
      ASSERT_NEAR(a[e], b[e], 2 * ulp * std::abs(b[e]) + 1e-6) << "element " << e;
    }
  }
}

std::string refusal(const Body& body, int64_t columns) {
  const auto kernel = lower_to_loop(body.graph);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  const auto made = pair_function(*kernel, 0, columns);
  return made.ok() ? "" : made.error().message;
}

TEST(PairFunction, SaysWhatItDoesNotTake) {
  Body wide, odd, moved, several, turned, thirds;
  wide.out(wide.op(ir::Cast{DType::kF64}, {wide.in("f16[6x40]")}));
  EXPECT_EQ(refusal(wide, 40), "the result is f64, a float of 8 to 32 bits expected");
  odd.out(odd.fn(ScalarFn::kAdd, {odd.in("f16[6x15]"), odd.in("f16[15]")}));
  EXPECT_EQ(refusal(odd, 15), "rows of the result have odd lengths");
  moved.out(moved.transpose(moved.in("f16[6x40]"), {1, 0}));
  EXPECT_NE(refusal(moved, 40), "");
  const auto x = several.in("f16[6x40]"), y = several.in("f16[40]");
  several.out(several.fn(ScalarFn::kAdd, {x, y})).out(several.fn(ScalarFn::kMul, {x, y}));
  EXPECT_NE(refusal(several, 40), "");
  const auto product = turned.in("f16[6x40]"), half = turned.half(product, 0);
  turned.out(turned.fn(ScalarFn::kAdd, {half, turned.reshape(turned.half(product, 1), {6, 20})}));
  EXPECT_EQ(refusal(turned, 40), "");
  EXPECT_NE(refusal(turned, 80), "");  // halves of other rows
  const auto whole = thirds.in("f16[6x60]");
  thirds.out(thirds.fn(ScalarFn::kAdd, {thirds.half(whole, 0),
                                        thirds.op(ir::Slice{{0, 20}, {6, 30}, {1, 1}}, {whole})}));
  EXPECT_NE(refusal(thirds, 60), "");
}

}  // namespace
}  // namespace kiln::codegen
