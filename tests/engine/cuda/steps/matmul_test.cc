#include "engine/cuda/steps/matmul.h"

#include <gtest/gtest.h>

#include "tests/engine/cuda/fake_cublaslt.h"

namespace kiln::cuda {
namespace {

using testing::FakeCublasLt;
using Space = plan::BufferRef::Space;

// d [2x2x2] = a [2x2x3] b [2x3x2] + bias [2] + residual, one batch axis.
struct Case {
  Case() {
    MatmulProblem& p = call.problem;
    p.m = p.n = 2;
    p.k = 3;
    p.batch = {2};
    p.a = {false, 3, {6}};
    p.b = {false, 2, {6}};
    p.d = {false, 2, {4}};
    p.bias = p.residual = true;
    call.algorithm.config = {66, 20, 1, 0, 0, 0, 35, 0, 3};
    call.algorithm.workspace_bytes = 100;
    call.algorithm.version = 130100;
    step.inputs = {operand(0, {2, 2, 3}), operand(64, {2, 3, 2}), operand(128, {2}),
                   operand(192, {2, 2, 2})};
    step.outputs = {operand(256, {2, 2, 2})};
    step.workspace = {Space::kArena, 0, 320, 128};
  }

  static plan::Operand operand(uint64_t offset, Shape shape) {
    const TensorType type{DType::kF32, std::move(shape)};
    return {{Space::kArena, 0, offset, static_cast<uint64_t>(type.bytes())}, type};
  }

  Result<PreparedMatmul> prepare(const Operation& operation) {
    const std::string text = encode(operation);
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    plan.blobs = {SharedBytes::take({bytes, bytes + text.size()})};
    return prepare_step(step, DeviceResources{plan, device, modules});
  }
  Result<PreparedMatmul> prepare() { return prepare(to_operation(call)); }

  ErrorCode fault(const Operation& operation) {
    const auto prepared = prepare(operation);
    return prepared.ok() ? ErrorCode::kInternal : prepared.error().code;
  }

  FakeCublasLt fake;
  std::shared_ptr<const Device> device = fake.device();
  ModuleSet modules{device};
  plan::Plan plan;
  plan::Matmul step;
  MatmulCall call;
};

TEST(MatmulStep, MultipliesAndAdds) {
  Case one;
  const auto prepared = one.prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  alignas(64) float arena[128] = {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 1, 0};  // a
  const float b[] = {1, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7}, bias[] = {100, 200};
  const float residual[] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};
  std::memcpy(arena + 16, b, sizeof b);
  std::memcpy(arena + 32, bias, sizeof bias);
  std::memcpy(arena + 48, residual, sizeof residual);
  const Spaces spaces{.arena = reinterpret_cast<std::byte*>(arena)};
  ASSERT_TRUE(enqueue_step(*prepared, spaces, nullptr).ok());
  const std::vector<float> expected = {1104, 2205, 3110, 4211, 5102, 6203, 7104, 8205};
  EXPECT_EQ(std::vector<float>(arena + 64, arena + 72), expected);
}

TEST(MatmulStep, OperationsComeBackAsTheyWere) {
  Case one;
  one.call.problem.activation = MatmulProblem::Activation::kGeluTanh;
  one.call.problem.alpha = 0.1;
  one.call.algorithm.opaque = {0, 1, UINT64_MAX, 3, 4, 5, 6, 7};
  const auto decoded = matmul_call_from(to_operation(one.call));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(*decoded, one.call);
}

// A wrong number anywhere must not reach the GPU: every attribute absent, of another type, and
// every number a little or very wrong.
TEST(MatmulStep, RefusesEveryDamagedAttribute) {
  Case one;
  const Operation good = to_operation(one.call);
  ASSERT_TRUE(one.prepare(good).ok());
  for (size_t i = 0; i < good.attributes.size(); ++i) {
    const std::string key = good.attributes[i].first;
    SCOPED_TRACE(key);
    Operation absent = good;
    absent.attributes.erase(absent.attributes.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(one.fault(absent), ErrorCode::kCorruptData);
    Operation other = good;
    EXPECT_EQ(one.fault(other.set(key, std::vector<double>{1})), ErrorCode::kCorruptData);
    for (int64_t wrong : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
      Operation damaged = good;
      if (const auto* number = std::get_if<int64_t>(&good.attributes[i].second)) {
        if (*number == wrong) continue;
        damaged.set(key, wrong);
      } else if (const auto* list = std::get_if<std::vector<int64_t>>(&good.attributes[i].second)) {
        if (list->at(0) == wrong) continue;
        damaged.set(key, std::vector<int64_t>{wrong});
      } else {
        continue;
      }
      EXPECT_EQ(one.fault(damaged), ErrorCode::kCorruptData) << wrong;
    }
  }
}

TEST(MatmulStep, RefusesWhatDoesNotFitItsBuffers) {
  const auto fault = [](auto damage) {
    Case one;
    damage(one);
    const auto prepared = one.prepare();
    return prepared.ok() ? "" : prepared.error().message;
  };
  EXPECT_EQ(fault([](Case& one) { one.step.inputs[0].buffer.offset = 4; }),
            "matmul: offset of input 0 is 4, expected a multiple of 64");
  EXPECT_EQ(fault([](Case& one) { one.step.workspace.bytes = 99; }),
            "workspace has 99 bytes, the kernel needs 100");
  EXPECT_EQ(fault([](Case& one) { one.step.outputs[0].buffer = one.step.inputs[0].buffer; }),
            "output 0 overlaps input 0");
  EXPECT_EQ(fault([](Case& one) { one.step.inputs.pop_back(); }),
            "matmul: there are 3 inputs and 1 outputs, expected 4 and 1");
  EXPECT_EQ(fault([](Case& one) { one.step.inputs[1].type.dtype = DType::kI32; }),
            "matmul: b is i32[2x3x2], expected f32");
  // In place of the residual is what cuBLASLt allows.
  EXPECT_EQ(fault([](Case& one) { one.step.outputs[0].buffer = one.step.inputs[3].buffer; }), "");
}

TEST(MatmulStep, SaysWhichVersionsDoNotAgree) {
  Case one;
  one.fake.refuses = true;
  one.fake.version = 120800;
  const auto other = one.prepare();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kVersionMismatch);
  EXPECT_NE(
      other.error().message.find("chosen with cuBLASLt 130100, is refused by cuBLASLt 120800"),
      std::string::npos)
      << other.error().message;
  one.fake.version = 130100;
  EXPECT_EQ(one.fault(to_operation(one.call)), ErrorCode::kCorruptData);
  one.fake.refuses = false;
  one.fake.workspace = 129;
  EXPECT_EQ(one.fault(to_operation(one.call)), ErrorCode::kCorruptData);
  one.fake.workspace = 128;
  EXPECT_TRUE(one.prepare().ok());
}

TEST(MatmulAlgorithm, TextsAreExact) {
  MatmulAlgorithm algorithm;
  algorithm.config = {66, 20, 1, 0, 0, 0, 35, 0, 3};
  algorithm.workspace_bytes = 100;
  algorithm.version = 130100;
  EXPECT_EQ(to_string(algorithm), "a66.t20.k1.r0.s0.c0.g35.i0.l3.w100.v130100");
  for (const char* text :
       {"", "a66", "a66.t20.k1.r0.s0.c0.g35.i0.l3.w100", "a66.t20.k1.r0.s0.c0.g35.i0.l3.w100.v1.",
        "a66.t20.k1.r0.s0.c0.g35.i0.l3.w100.v1.x1", "a066.t20.k1.r0.s0.c0.g35.i0.l3.w100.v1",
        "a66.t20.k1.r0.s0.c0.g35.i0.l4294967296.w100.v1"}) {
    EXPECT_FALSE(parse_matmul_algorithm(text)) << text;
  }
}

}  // namespace
}  // namespace kiln::cuda
