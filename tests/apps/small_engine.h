// An engine by hand for tests of the programs: y = x * scale + 1 of x f32[B, 2] and steps i32[2],
// copied to the output `echo`; scale = {2, 3}. Buckets 1 and 4.
#pragma once
#include <string>

#include "formats/engine_file/write_engine.h"
#include "tests/engine/plan_fixtures.h"

namespace kiln::testing {

inline plan::Plan small_plan() {
  plan::Plan plan;
  plan.origin = fixture_origin();
  plan.inputs = {{"x", 0}, {"steps", -1}};
  plan.outputs = {{"y", 0}, {"echo", -1}};
  plan.batch_padding = true;
  PlanParts parts(plan);
  const uint32_t mul = parts.operation(Operation{"mul", {}});
  const uint32_t add = parts.operation(Operation{"add", {}});
  const BufferRef scale = parts.constant<float>("scale", {2, 3});
  const BufferRef one = parts.constant<float>("one", {1});
  for (int64_t batch : {1, 4}) {
    const TensorType type{DType::kF32, {batch, 2}}, row{DType::kF32, {2}}, scalar{DType::kF32, {}};
    const auto bytes = static_cast<uint64_t>(type.bytes());
    plan::ShapePoint point;
    point.name = "b" + std::to_string(batch);
    point.batch = batch;
    point.inputs = {type, {DType::kI32, {2}}};
    point.outputs = point.inputs;
    point.arena_bytes = point.arena_lower_bound_bytes = 64;
    point.region_names = {"scale_x", "add_one", "echo"};
    point.steps = {
        {0,
         plan::HostOperation{
             mul, {{input(0, bytes), type}, {scale, row}}, {{arena(0, bytes), type}}, {}}},
        {1,
         plan::HostOperation{
             add, {{arena(0, bytes), type}, {one, scalar}}, {{output(0, bytes), type}}, {}}},
        {2, plan::Copy{input(1, 8), output(1, 8)}},
    };
    plan.points.push_back(point);
  }
  return plan;
}

}  // namespace kiln::testing
