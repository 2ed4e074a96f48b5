#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/engine/runtime_fixture.h"

namespace kiln {
namespace {

using testing::affine_of;
using testing::affine_plan;
using testing::infer_same_shape;
using testing::load_plan;
using testing::ramp;
using testing::tensor;

std::string message_of(const auto& result) { return result ? "" : result.error().message; }

TEST(Engine, RunsEveryStepKind) {
  const auto engine = load_plan(affine_plan({1, 4}));
  ASSERT_TRUE(engine) << message_of(engine);
  for (int64_t rows : {1, 4}) {
    std::vector<float> x = ramp(rows, 0.5f), y(x.size());
    ASSERT_TRUE(infer_same_shape(*engine, {rows, 4}, x, y));
    EXPECT_EQ(y, affine_of(x));
  }
}

TEST(Engine, PadsToTheSmallestBucket) {
  const auto engine = load_plan(affine_plan({1, 4, 8}));
  ASSERT_TRUE(engine);
  for (int64_t rows = 1; rows <= 8; ++rows) {
    std::vector<float> x = ramp(rows, 3), y(x.size());
    // A guard behind the output shows a write past the request's rows.
    y.push_back(-77);
    ASSERT_TRUE(infer_same_shape(*engine, {rows, 4}, x, y)) << rows;
    EXPECT_EQ(y.back(), -77);
    y.pop_back();
    EXPECT_EQ(y, affine_of(x)) << rows;
  }
}

TEST(Engine, PadsAlongALaterAxis) {
  const auto plan =
      testing::scale_plan({testing::point_of("b4", 4, {DType::kF32, {3, 4, 2}})}, /*batch_axis=*/1);
  const auto engine = load_plan(plan);
  ASSERT_TRUE(engine);
  std::vector<float> x(3 * 2 * 2), y(x.size()), expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) expected[i] = 2 * (x[i] = static_cast<float>(i + 1));
  ASSERT_TRUE(infer_same_shape(*engine, {3, 2, 2}, x, y));
  EXPECT_EQ(y, expected);
}

TEST(Engine, MatchesTensorsByNameOrPosition) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine);
  std::vector<float> x = ramp(1, 1), y(4);
  for (const char* name : {"", "x"}) {
    const Tensor in = tensor(name, {1, 4}, x), out = tensor("y", {1, 4}, y);
    EXPECT_TRUE(engine->infer({&in, 1}, {&out, 1}));
  }
  const Tensor wrong = tensor("z", {1, 4}, x), out = tensor("y", {1, 4}, y);
  EXPECT_EQ(message_of(engine->infer({&wrong, 1}, {&out, 1})),
            "has no input 'z', its inputs are 'x'");
  const Tensor two[] = {tensor("x", {1, 4}, x), tensor("x", {1, 4}, x)};
  EXPECT_EQ(message_of(engine->infer(two, {&out, 1})), "got 2 inputs, expected 1: 'x'");
}

TEST(Engine, ExplainsRequestsThatNoPointTakes) {
  const auto engine = load_plan(affine_plan({1, 4}));
  ASSERT_TRUE(engine);
  std::vector<float> x(400), y(400);
  const std::string points = "; shape points: b1 (x f32[1x4]), b4 (x f32[4x4])";
  EXPECT_EQ(
      message_of(infer_same_shape(*engine, {5, 4}, x, y)),
      "the request has 5 rows, the largest bucket holds fewer; split the request or build with "
      "a larger --max-batch" +
          points);
  EXPECT_EQ(message_of(infer_same_shape(*engine, {2, 5}, x, y)),
            "input 'x' is f32[2x5], expected f32[Bx4]" + points);
  EXPECT_EQ(message_of(infer_same_shape(*engine, {2, 4, 1}, x, y)),
            "input 'x' is f32[2x4x1], expected f32[Bx4]" + points);
  EXPECT_EQ(message_of(infer_same_shape(*engine, {0, 4}, x, y)),
            "input 'x' is f32[0x4], expected f32[Bx4]" + points);
  EXPECT_FALSE(infer_same_shape(*engine, {-1, 4}, x, y));
  EXPECT_FALSE(infer_same_shape(*engine, {int64_t{1} << 62, 4}, x, y));
  Tensor half = tensor("x", {1, 4}, x);
  half.type.dtype = DType::kF16;
  const Tensor out = tensor("y", {1, 4}, y);
  EXPECT_EQ(message_of(engine->infer({&half, 1}, {&out, 1})),
            "input 'x' is f16[1x4], expected f32[Bx4]" + points);
}

TEST(Engine, DoesNotPadDependentRows) {
  plan::Plan plan = affine_plan({1, 4});
  plan.batch_padding = false;
  plan.batch_padding_reason = "node 'softmax' mixes rows";
  const auto engine = load_plan(plan);
  ASSERT_TRUE(engine);
  std::vector<float> x = ramp(4, 1), y(16);
  EXPECT_TRUE(infer_same_shape(*engine, {4, 4}, x, y));
  EXPECT_EQ(message_of(infer_same_shape(*engine, {3, 4}, x, y)),
            "the request has 3 rows, no bucket has as many and rows may not be padded (node "
            "'softmax' mixes rows); build with --batches 3; shape points: b1 (x f32[1x4]), b4 (x "
            "f32[4x4])");
}

TEST(Engine, ChoosesTheShapeSet) {
  const auto engine =
      load_plan(testing::scale_plan({testing::point_of("b2/short", 2, {DType::kF32, {2, 3}}),
                                     testing::point_of("b2/long", 2, {DType::kF32, {2, 5}}),
                                     testing::point_of("b8/long", 8, {DType::kF32, {8, 5}})},
                                    0));
  ASSERT_TRUE(engine);
  for (const Shape& shape : {Shape{1, 3}, Shape{2, 5}, Shape{7, 5}}) {
    std::vector<float> x(static_cast<size_t>(element_count(shape)), 2), y(x.size());
    ASSERT_TRUE(infer_same_shape(*engine, shape, x, y));
    EXPECT_EQ(y, std::vector<float>(x.size(), 4));
  }
  std::vector<float> x(9), y(9);
  EXPECT_FALSE(infer_same_shape(*engine, {3, 3}, x, y));
}

TEST(Engine, ComparesFixedInputsByValue) {
  plan::Plan plan = testing::scale_plan({testing::point_of("a", 0, {DType::kF32, {2}})}, -1);
  plan.inputs.push_back({"shape", -1});
  plan.points[0].inputs.push_back({DType::kI64, {1}});
  const int64_t built_for = 2;
  const auto* bytes = reinterpret_cast<const std::byte*>(&built_for);
  plan.points[0].fixed_inputs = {{1, {bytes, bytes + sizeof(built_for)}}};
  const auto engine = load_plan(plan);
  ASSERT_TRUE(engine) << message_of(engine);
  std::vector<float> x = {1, 2}, y(2);
  for (int64_t value : {2, 3}) {
    const Tensor inputs[] = {tensor("x", {2}, x), {"shape", {DType::kI64, {1}}, &value}};
    const Tensor out = tensor("y", {2}, y);
    const auto ran = engine->infer(inputs, {&out, 1});
    EXPECT_EQ(ran.ok(), value == 2);
    if (!ran) {
      EXPECT_EQ(message_of(ran),
                "input 'shape' has another value than the engine was built for; shapes depend on "
                "it; shape points: a (x f32[2], shape i64[1])");
    }
  }
}

TEST(Engine, ChecksTheCallersMemory) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine);
  std::vector<float> x = ramp(2, 1), y(8);
  const auto call = [&](Tensor in, Tensor out) {
    return message_of(engine->infer({&in, 1}, {&out, 1}));
  };
  const Tensor in = tensor("x", {1, 4}, x), out = tensor("y", {1, 4}, y);
  Tensor bad = in;
  bad.data = nullptr;
  EXPECT_EQ(call(bad, out), "input 'x' has no data, expected 16 bytes");
  bad.data = reinterpret_cast<char*>(x.data()) + 1;
  EXPECT_EQ(call(bad, out), "input 'x': data is not aligned to its element's 4 bytes");
  bad = in;
  bad.memory = MemoryKind::kDevice;
  EXPECT_EQ(call(bad, out), "input 'x' is in device memory, the engine runs on the host");
  bad = in;
  bad.type.dtype = static_cast<DType>(200);
  EXPECT_EQ(call(bad, out), "input 'x' has the dtype number 200, which is none of DType's");
  bad = out;
  bad.type.dtype = static_cast<DType>(kDTypeCount);
  EXPECT_EQ(call(in, bad), "output 'y' has the dtype number 19, which is none of DType's");
  bad = out;
  bad.type.shape = {2, 4};
  EXPECT_EQ(call(in, bad), "output 'y' is f32[2x4], expected f32[1x4]");
  bad = out;
  bad.data = x.data() + 3;
  EXPECT_EQ(call(in, bad), "output 'y' overlaps input 'x'");
  bad.data = x.data() + 4;
  EXPECT_EQ(call(in, bad), "");
}

TEST(Engine, LoadsFromMemory) {
  const auto bytes = *to_bytes(affine_plan({1}));
  const auto engine =
      Engine::load_bytes(SharedBytes::take(bytes), {.host_kernels = testing::fake_kernels()});
  ASSERT_TRUE(engine) << message_of(engine);
  std::vector<float> x = ramp(1, 1), y(4);
  ASSERT_TRUE(infer_same_shape(*engine, {1, 4}, x, y));
  EXPECT_EQ(y, affine_of(x));
  auto shifted = std::make_shared<std::vector<std::byte>>(bytes.size() + 1);
  const auto odd = Engine::load_bytes({shifted, std::span(*shifted).subspan(1)});
  EXPECT_EQ(message_of(odd), "engine 'in memory': its bytes are not aligned to 8");
}

TEST(Engine, TellsOutputTypes) {
  const auto engine = load_plan(affine_plan({1, 4}));
  ASSERT_TRUE(engine);
  const Tensor in = {"x", {DType::kF32, {3, 4}}};
  const auto types = engine->output_types({&in, 1});
  ASSERT_TRUE(types) << message_of(types);
  ASSERT_EQ(types->size(), 1u);
  EXPECT_EQ((*types)[0].name, "y");
  EXPECT_EQ((*types)[0].type, (TensorType{DType::kF32, {3, 4}}));
  EXPECT_EQ((*types)[0].batch_axis, 0);
}

TEST(Engine, TellsWhatItIs) {
  const auto engine = load_plan(affine_plan({1, 4}));
  ASSERT_TRUE(engine);
  const EngineInfo& info = engine->info();
  EXPECT_EQ(info.target, "host");
  EXPECT_EQ(info.model_name, "fixture.onnx");
  EXPECT_TRUE(info.verified);
  ASSERT_EQ(info.points.size(), 2u);
  EXPECT_EQ(info.points[1].name, "b4");
  EXPECT_EQ(info.points[1].steps, 7u);
  EXPECT_EQ(info.points[1].arena_bytes, 2 * 64 + 64u);
  EXPECT_EQ(info.context_bytes, 2 * 64 + 64 + 2 * 64u);  // b4's arena, x and y staged
}

TEST(Engine, RefusesWhatItCannotRun) {
  const auto refusal = [](auto&& change,
                          LoadOptions options = {.host_kernels = testing::fake_kernels()}) {
    plan::Plan plan = affine_plan({1});
    change(plan);
    const auto engine = load_plan(plan, options);
    return engine ? std::pair(ErrorCode::kInternal, std::string("loaded"))
                  : std::pair(engine.error().code, engine.error().message);
  };
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  const auto nothing = [](plan::Plan&) {};

  // No machine has a GPU of that number; most tests run where there is none at all.
  auto [code, message] = refusal(
      [](plan::Plan& p) {
        p.origin.target = plan::Target::kCuda;
        p.origin.device = "NVIDIA H200";
        p.origin.compute_capability = 90;
      },
      {.host_kernels = testing::fake_kernels(), .device = 1000});
  EXPECT_EQ(code, ErrorCode::kUnsupported);
  EXPECT_NE(message.find("m.engine': was built for target cuda, device 'NVIDIA H200'"),
            std::string::npos)
      << message;

  std::tie(code, message) = refusal([](plan::Plan& p) { p.origin.verified = false; });
  EXPECT_EQ(code, ErrorCode::kVerification);
  EXPECT_EQ(refusal([](plan::Plan& p) { p.origin.verified = false; },
                    {.host_kernels = testing::fake_kernels(), .allow_unverified = true})
                .second,
            "loaded");

  std::tie(code, message) = refusal(nothing, LoadOptions{});
  EXPECT_EQ(code, ErrorCode::kUnsupported);
  EXPECT_TRUE(ends_with(message,
                        "point 'b1': step 0 ('double'): needs host kernels; link "
                        "kiln_host and set LoadOptions::host_kernels"))
      << message;

  std::tie(code, message) = refusal([](plan::Plan& p) { p.plugins = {{"com.example.X", "1"}}; });
  EXPECT_EQ(code, ErrorCode::kUnsupported);
  EXPECT_TRUE(ends_with(message,
                        "needs plugin 'com.example.X' version '1', which no library was "
                        "given for; give its library with LoadOptions::plugins"))
      << message;

  std::tie(code, message) = refusal([](plan::Plan& p) { p.origin.world_size = 2; });
  EXPECT_EQ(code, ErrorCode::kUnsupported);

  std::tie(code, message) =
      refusal(nothing, {.contexts = -1, .host_kernels = testing::fake_kernels()});
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
}

TEST(Engine, NamesTheRegionThatFailed) {
  plan::Plan plan = affine_plan({1});
  std::get<plan::HostOperation>(plan.points[0].steps[2].action).operation =
      testing::PlanParts(plan).operation(Operation{"fail", {}});
  // A failing kernel does not work in place.
  std::get<plan::HostOperation>(plan.points[0].steps[2].action).outputs[0].buffer =
      testing::arena(64, 16);
  const auto engine = load_plan(plan);
  ASSERT_TRUE(engine) << message_of(engine);
  std::vector<float> x = ramp(1, 1), y(4);
  EXPECT_EQ(message_of(infer_same_shape(*engine, {1, 4}, x, y)),
            "point 'b1': 'loop': index is 7, expected 0 to 3");
}

TEST(ExecutionContext, OutlivesItsEngine) {
  auto engine = load_plan(affine_plan({1, 4}));
  ASSERT_TRUE(engine);
  auto context = engine->create_context();
  ASSERT_TRUE(context);
  engine = Error{ErrorCode::kInternal, "gone"};
  std::vector<float> x = ramp(3, 2), y(12);
  const Tensor in = tensor("x", {3, 4}, x), out = tensor("y", {3, 4}, y);
  ASSERT_TRUE(context->enqueue({&in, 1}, {&out, 1}));
  EXPECT_EQ(y, affine_of(x));
  ExecutionContext moved = *std::move(context);
  EXPECT_FALSE(context->enqueue({&in, 1}, {&out, 1}));
  EXPECT_TRUE(moved.enqueue({&in, 1}, {&out, 1}));
}

TEST(ExecutionContext, IsUsableAfterAnError) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine);
  auto context = engine->create_context();
  std::vector<float> x = ramp(1, 2), y(4);
  const Tensor bad = tensor("x", {9, 4}, x), in = tensor("x", {1, 4}, x),
               out = tensor("y", {1, 4}, y);
  EXPECT_FALSE(context->enqueue({&bad, 1}, {&out, 1}));
  EXPECT_TRUE(context->enqueue({&in, 1}, {&out, 1}));
  EXPECT_EQ(y, affine_of(x));
}

TEST(Engine, HugeContextIsAnError) {
  plan::Plan plan = affine_plan({1});
  plan.points[0].arena_bytes = uint64_t{1} << 47;
  const auto engine = load_plan(plan);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kOutOfMemory);
}

// An exception stays inside, and the context goes back: with one context, a lost one would leave
// the next call waiting.
TEST(Engine, LetsNoExceptionOut) {
  plan::Plan plan = affine_plan({1});
  auto& step = std::get<plan::HostOperation>(plan.points[0].steps[2].action);
  step.operation = testing::PlanParts(plan).operation(Operation{"throw", {}});
  step.outputs[0].buffer = testing::arena(64, 16);
  const auto engine = load_plan(plan);
  ASSERT_TRUE(engine) << message_of(engine);
  std::vector<float> x = ramp(1, 1), y(4);
  for (int call = 0; call < 2; ++call) {
    const auto done = infer_same_shape(*engine, {1, 4}, x, y);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kOutOfMemory);
  }
}

TEST(Engine, MovedFromGivesErrors) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine);
  Engine from = *engine;
  const Engine to = std::move(from);
  std::vector<float> x = ramp(1, 1), y(4);
  EXPECT_TRUE(infer_same_shape(to, {1, 4}, x, y));
  // NOLINTBEGIN(bugprone-use-after-move): that is the test
  EXPECT_EQ(message_of(infer_same_shape(from, {1, 4}, x, y)), "the engine was moved from");
  EXPECT_FALSE(from.create_context());
  EXPECT_FALSE(from.output_types({}));
  EXPECT_FALSE(from.shape_point({}));
  EXPECT_FALSE(from.allocate(MemoryKind::kHost, 1));
  EXPECT_FALSE(from.copy(nullptr, nullptr, 0));
  // NOLINTEND(bugprone-use-after-move)
}

TEST(Engine, CopyNeedsMemory) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine);
  float value = 0;
  EXPECT_EQ(message_of(engine->copy(nullptr, &value, 4)),
            "copy of 4 bytes: no memory is given to copy to");
  EXPECT_EQ(message_of(engine->copy(&value, nullptr, 4)),
            "copy of 4 bytes: no memory is given to copy from");
  EXPECT_TRUE(engine->copy(nullptr, nullptr, 0));
}

TEST(Engine, OnTheHostLendsHostMemoryAlone) {
  const auto engine = load_plan(affine_plan({1}));
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ(engine->info().device_address, "");
  const auto block = engine->allocate(MemoryKind::kHost, 100);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block->get()) % 256, 0u);
  const std::vector<float> values = ramp(1, 5);
  std::vector<float> back(values.size());
  ASSERT_TRUE(engine->copy(block->get(), values.data(), 16).ok());
  ASSERT_TRUE(engine->copy(back.data(), block->get(), 16).ok());
  EXPECT_EQ(back, values);
  const auto device = engine->allocate(MemoryKind::kDevice, 100);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace kiln
