#include "builder/verify/locate_fault.h"

#include <gtest/gtest.h>

#include <cstring>

#include "builder/tactics/lower_nodes.h"
#include "engine/host_kernels.h"

namespace kiln {
namespace {

const TensorType kType{DType::kF32, {4}};

HostTensor floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {kType, SharedBytes::take(std::move(bytes))};
}

std::shared_ptr<ir::Graph> body_of(ScalarFn fn) {
  auto body = std::make_shared<ir::Graph>();
  const ir::ValueId x = body->add_input("x", kType);
  body->mark_output(body->result(*body->add_node("n", {}, ir::Pointwise{fn}, {x})));
  return body;
}

// What a region means, and what its kernel does.
struct Part {
  const char* name;
  ScalarFn means, does;
};

Schedule chain(const std::vector<Part>& parts) {
  Schedule schedule;
  schedule.point.name = "b1";
  ir::ValueId at = schedule.graph.add_input("x", kType);
  for (const Part& part : parts) {
    const ir::Region region{ir::Region::Kind::kLoop, body_of(part.means), {part.name}, ""};
    const ir::NodeId node =
        schedule.graph.add_typed_node(part.name, {}, region, {at}, std::vector<TensorType>{kType});
    at = schedule.graph.node(node).outputs[0];
    NodeLowering lowering;
    EXPECT_TRUE(lowering.lower_region(*body_of(part.does)).ok());
    schedule.regions.push_back({node, part.name, false, std::move(lowering).take()});
  }
  schedule.graph.mark_output(at);
  schedule.graph.set_output_name(0, "y");
  return schedule;
}

// With a model that makes `want` of -1, 2, -3, 4.
Fault fault_of(const std::vector<Part>& parts, const std::vector<float>& want) {
  LoadOptions load;
  load.host_kernels = host_kernels();
  const HostTensor x = floats({-1, 2, -3, 4}), y = floats(want);
  auto fault = locate_fault(chain(parts), {&x, 1}, {&y, 1}, load, {});
  EXPECT_TRUE(fault.ok()) << fault.error().message;
  return fault.ok() ? *fault : Fault{};
}

TEST(LocateFault, NamesTheRegionAtFault) {
  const Part abs{"abs", ScalarFn::kAbs, ScalarFn::kAbs}, neg{"neg", ScalarFn::kNeg, ScalarFn::kNeg},
      sqrt{"sqrt", ScalarFn::kSqrt, ScalarFn::kNeg}, ceil{"ceil", ScalarFn::kCeil, ScalarFn::kCeil};
  const std::vector<float> want = {1, 2, 2, 2};  // ceil(sqrt(|x|))
  const Fault fault = fault_of({abs, sqrt, ceil}, want);
  EXPECT_EQ(fault.region, 1U);
  EXPECT_NE(fault.what.find("region 'sqrt': element 3 is -4, expected 2 within"), std::string::npos)
      << fault.what;
  // What follows a wrong region works on wrong values, and is right of them.
  EXPECT_EQ(fault_of({sqrt, abs, neg}, want).region, 0U);
  EXPECT_EQ(fault_of({neg, abs, sqrt}, want).region, 2U);
}

// The first of two.
TEST(LocateFault, NamesOneAtATime) {
  const Fault fault = fault_of({{"abs", ScalarFn::kAbs, ScalarFn::kAbs},
                                {"neg", ScalarFn::kNeg, ScalarFn::kAbs},
                                {"ceil", ScalarFn::kCeil, ScalarFn::kNeg}},
                               {-1, -2, -3, -4});
  EXPECT_EQ(fault.region, 1U);
}

TEST(LocateFault, TellsAPassFromAKernel) {
  const std::vector<Part> parts = {{"abs", ScalarFn::kAbs, ScalarFn::kAbs},
                                   {"neg", ScalarFn::kNeg, ScalarFn::kNeg}};
  Fault fault = fault_of(parts, {1, 2, 3, 4});
  EXPECT_FALSE(fault.region);
  EXPECT_NE(fault.what.find("a pass changed the model's meaning"), std::string::npos) << fault.what;
  // Alone every region is right, and so is the whole once no buffer is used twice.
  fault = fault_of(parts, {-1, -2, -3, -4});
  EXPECT_FALSE(fault.region);
  EXPECT_NE(fault.what.find("buffers of the plan overlap"), std::string::npos) << fault.what;
}

// The engine's outputs may be narrower than the model's.
TEST(LocateFault, ComparesOutputsOfAnotherType) {
  LoadOptions load;
  load.host_kernels = host_kernels();
  const Schedule schedule = chain({{"abs", ScalarFn::kAbs, ScalarFn::kAbs}});
  const HostTensor x = floats({-1, 2, -3, 4});
  const auto wrong = convert_tensor(floats({-1, 2, -3, 4}), DType::kF64);
  ASSERT_TRUE(wrong.ok());
  const auto fault = locate_fault(schedule, {&x, 1}, {&*wrong, 1}, load, {});
  ASSERT_TRUE(fault.ok()) << fault.error().message;
  EXPECT_NE(fault->what.find("a pass changed"), std::string::npos) << fault->what;
}

}  // namespace
}  // namespace kiln
