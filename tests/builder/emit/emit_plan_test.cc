#include "builder/emit/emit_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln {
namespace {

const TensorType kType{DType::kF32, {8}};

// x -> y through regions that do what each lowering says.
Schedule chain(const std::vector<Lowered>& lowerings) {
  Schedule schedule;
  auto body = std::make_shared<ir::Graph>();
  const ir::ValueId x = body->add_input("x", kType);
  body->mark_output(body->result(*body->add_node("e", {}, ir::Pointwise{ScalarFn::kExp}, {x})));
  const ir::Region region{ir::Region::Kind::kLoop, body, {}, ""};
  ir::ValueId at = schedule.graph.add_input("x", kType);
  for (const Lowered& lowered : lowerings) {
    const ir::NodeId node =
        schedule.graph.add_typed_node("r", {}, region, {at}, std::vector<TensorType>{kType});
    at = schedule.graph.node(node).outputs[0];
    schedule.regions.push_back({node, "r", false, lowered});
  }
  schedule.graph.mark_output(at);
  return schedule;
}

LocalLaunch launch(bool programmatic) {
  LocalLaunch launch;
  launch.cubin = SharedBytes::take({});
  launch.entry = "k";
  launch.programmatic = programmatic;
  launch.inputs = {{LocalBuffer::Kind::kInput, 0}};
  launch.outputs = {{LocalBuffer::Kind::kOutput, 0}};
  return launch;
}

Lowered one(LocalStep step) {
  Lowered lowered;
  lowered.steps.push_back(std::move(step));
  return lowered;
}

TEST(EmitPlan, KernelsOverlapWithDeviceStepsAlone) {
  const LocalCopy copy{{LocalBuffer::Kind::kInput, 0}, {LocalBuffer::Kind::kOutput, 0}};
  PlanBuilder builder;
  builder.add_point(
      chain({one(launch(true)), one(launch(true)), one(copy), one(launch(true)), one(launch(false)),
             one(launch(true)), one(LibraryCall{}), one(launch(true))}));
  const plan::Plan plan = std::move(builder).finish();
  std::string programmatic;
  for (const plan::Step& step : plan.points[0].steps) {
    const auto* made = std::get_if<plan::KernelLaunch>(&step.action);
    programmatic += made == nullptr ? '-' : made->programmatic ? '1' : '0';
  }
  EXPECT_EQ(programmatic, "01-001-1");
}

TEST(EmitPlan, LeavesBytesOnBothSidesOfEveryBufferOfTheArena) {
  constexpr uint64_t kApart = 256;
  Lowered lowered;
  lowered.temporaries = {{DType::kF32, {100}}, {DType::kU8, {1}}};
  LocalLaunch first = launch(false), second = launch(false);
  first.outputs = {{LocalBuffer::Kind::kTemporary, 0}, {LocalBuffer::Kind::kTemporary, 1}};
  first.workspace_bytes = 1000;
  second.inputs = first.outputs;
  lowered.steps = {first, second};
  PlanBuilder builder(kApart);
  builder.add_point(chain({lowered}));
  const plan::Plan plan = std::move(builder).finish();
  const plan::ShapePoint& point = plan.points[0];
  const auto& made = std::get<plan::KernelLaunch>(point.steps[0].action);
  std::vector<plan::BufferRef> buffers = {made.outputs[0].buffer, made.outputs[1].buffer,
                                          made.workspace};
  EXPECT_EQ(buffers[0].bytes, 400u);
  EXPECT_EQ(buffers[1].bytes, 1u);
  EXPECT_EQ(buffers[2].bytes, 1000u);
  std::ranges::sort(buffers, {}, &plan::BufferRef::offset);
  uint64_t end = 0;
  for (const plan::BufferRef& buffer : buffers) {
    ASSERT_EQ(buffer.space, plan::BufferRef::Space::kArena);
    EXPECT_EQ(buffer.offset % kApart, 0u);
    EXPECT_GE(buffer.offset, end + kApart);
    end = buffer.offset + buffer.bytes;
  }
  EXPECT_GE(point.arena_bytes, end + kApart);
}

}  // namespace
}  // namespace kiln
