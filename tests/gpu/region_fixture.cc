#include "tests/gpu/region_fixture.h"

#include <optional>

#include "builder/emit/emit_plan.h"
#include "formats/engine_file/write_engine.h"
#include "tests/builder/random_tensors.h"

namespace kiln::testing {
namespace {

constexpr size_t kWeights = 1;  // the input that may be constant
constexpr size_t kTwice = 2;

std::string input_name(size_t i) { return "x" + std::to_string(i); }
std::string output_name(size_t i) { return "y" + std::to_string(i); }

}  // namespace

TensorType RegionsOnGpu::Trial::result() const {
  const ir::Graph& body = *region.body;
  return body.type(body.outputs()[0]);
}

void RegionsOnGpu::SetUp() {
  OnGpu::SetUp();
  if (IsSkipped()) return;
  auto target = open_cuda_target(0);
  ASSERT_TRUE(target.ok()) << target.error().message;
  target_ = *std::move(target);
}

RegionsOnGpu::Trial RegionsOnGpu::trial_of(ir::Graph body, bool constant_weights) {
  auto shared = std::make_shared<ir::Graph>(std::move(body));
  auto inputs = test::random_inputs(*shared, 23);
  return {{ir::Region::Kind::kContraction, std::move(shared), {}, ""},
          std::move(inputs),
          constant_weights};
}

TacticQuery RegionsOnGpu::query(const Trial& trial) const {
  TacticQuery query{trial.region, {}, {}, {}, target_.device, {}, &target_.tools};
  const ir::Graph& body = *trial.region.body;
  for (ir::ValueId id : body.inputs()) query.inputs.push_back(body.type(id));
  for (ir::ValueId id : body.outputs()) query.outputs.push_back(body.type(id));
  query.constants.resize(query.inputs.size());
  if (trial.constant_weights) query.constants[kWeights] = trial.inputs[kWeights].bytes;
  return query;
}

// The region twice, so that the second may begin before the first has ended.
Result<Engine> RegionsOnGpu::engine_of(const Trial& trial, const Lowered& lowered,
                                       bool overlap) const {
  Schedule schedule;
  schedule.point.name = "p";
  ir::Graph& graph = schedule.graph;
  std::vector<ir::ValueId> arguments;
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    const HostTensor& input = trial.inputs[i];
    arguments.push_back(trial.constant_weights && i == kWeights
                            ? graph.add_constant("w", input.type, input.bytes)
                            : graph.add_input(input_name(i), input.type));
  }
  const TensorType made = trial.result();
  for (size_t i = 0; i < kTwice; ++i) {
    const ir::NodeId node =
        graph.add_typed_node("region", {}, trial.region, arguments, std::span(&made, 1));
    graph.mark_output(graph.result(node));
    graph.set_output_name(i, output_name(i));
    schedule.regions.push_back({node, "region", false, lowered});
  }
  PlanBuilder builder(256);
  builder.add_point(schedule);
  plan::Plan plan = std::move(builder).finish();
  plan.origin.target = plan::Target::kCuda;
  plan.origin.compute_capability = target_.device.compute_capability;
  KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(plan));
  LoadOptions options;
  options.allow_unverified = true;
  options.programmatic_launch = overlap;
  return Engine::load_bytes(SharedBytes::take(std::move(bytes)), options);
}

void RegionsOnGpu::check(const Trial& trial, const Lowered& lowered, int runs,
                         const std::function<void(const Block&)>& expect_right) const {
  std::vector<Tensor> in;
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    if (trial.constant_weights && i == kWeights) continue;
    const HostTensor& input = trial.inputs[i];
    in.push_back({input_name(i), input.type,
                  const_cast<std::byte*>(input.bytes.data())});  // NOLINT: only read
  }
  const TensorType made = trial.result();
  std::optional<Block> first;
  for (const bool overlap : {true, false}) {
    const auto engine = engine_of(trial, lowered, overlap);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    for (int i = 0; i < runs; ++i) {
      std::vector<Block> found(kTwice, Block(static_cast<size_t>(made.bytes()), std::byte{0xFF}));
      std::vector<Tensor> out;
      for (size_t n = 0; n < kTwice; ++n) out.push_back({output_name(n), made, found[n].data()});
      const auto ran = engine->infer(in, out);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      if (!first) {
        first = found[0];
        expect_right(*first);
        if (HasFatalFailure()) return;
      }
      for (const Block& one : found) {
        ASSERT_TRUE(one == *first) << "run " << i << ", overlap " << overlap;
      }
    }
  }
}

}  // namespace kiln::testing
