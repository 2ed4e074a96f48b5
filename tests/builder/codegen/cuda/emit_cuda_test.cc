// Generated kernels, run thread by thread on the host, compute what the operations that they stand
// for compute one by one, and what the loop interpreter computes, under every schedule.
#include "builder/codegen/cuda/emit_cuda.h"

#include <gtest/gtest.h>

#include <set>

#include "builder/codegen/lower_loop.h"
#include "tests/builder/codegen/cuda/kernel_cases.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/codegen/random_body.h"

namespace kiln::codegen {
namespace {

// One kernel under one schedule, with what it was made from.
struct Trial {
  const Body* body;
  std::string name;
  double tolerance;
  CudaSchedule schedule;
};

class Trials {
 public:
  void add(const std::string& name, const Body& body, double tolerance, size_t most = 14) {
    const auto kernel = lower_to_loop(body.graph);
    ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.error().message;
    std::vector<CudaSchedule> schedules = all_schedules(*kernel);
    if (schedules.size() > most) schedules.erase(schedules.begin(), schedules.end() - most);
    for (const CudaSchedule& schedule : schedules) {
      auto source = emit_cuda(*kernel, schedule);
      ASSERT_TRUE(source.ok()) << name << ": " << source.error().message;
      items_.push_back({*kernel, *std::move(source)});
      trials_.push_back({&body, name, tolerance, schedule});
      families_.insert(schedule.family);
    }
  }

  size_t families() const { return families_.size(); }

  void run() {
    const auto program = HostProgram::compile(items_);
    ASSERT_TRUE(program.ok()) << program.error().message;
    for (size_t i = 0; i < trials_.size(); ++i) run_one(*program, i);
  }

 private:
  void run_one(const HostProgram& program, size_t i) {
    const Trial& trial = trials_[i];
    const ir::Graph& graph = trial.body->graph;
    std::mt19937 random(7);
    std::vector<Bytes> inputs;
    for (const ir::ValueId input : graph.inputs()) {
      inputs.push_back(random_bytes(graph.type(input), -1, 1, random));
    }
    const auto nodes = run_node_by_node(graph, inputs);
    const auto loop = interpret(items_[i].kernel, inputs);
    const auto got = program.run(i, inputs);
    ASSERT_TRUE(nodes.ok() && loop.ok());
    const std::string what =
        trial.name + " with " + to_text(trial.schedule) + "\n" + items_[i].source.text;
    ASSERT_TRUE(got.ok()) << got.error().message << " in " << what;
    for (size_t o = 0; o < got->size(); ++o) {
      const DType dtype = graph.type(graph.outputs()[o]).dtype;
      ASSERT_EQ(difference(dtype, (*got)[o], (*nodes)[o], trial.tolerance), "")
          << "nodes, " << what;
      ASSERT_EQ(difference(dtype, (*got)[o], (*loop)[o], trial.tolerance), "") << "loop, " << what;
    }
  }

  std::vector<HostProgram::Item> items_;
  std::vector<Trial> trials_;
  std::set<Family> families_;
};

TEST(EmitCuda, KernelsOfEveryKindUnderEverySchedule) {
  const std::vector<KernelCase> cases = kernel_cases();
  Trials trials;
  for (const KernelCase& c : cases) trials.add(c.name, c.body, c.tolerance);
  if (HasFatalFailure()) return;
  EXPECT_EQ(trials.families(), kFamilyCount);
  trials.run();
}

TEST(EmitCuda, RandomBodies) {
  constexpr uint32_t kBodies = 200;
  std::vector<Body> bodies;
  for (uint32_t seed = 0; seed < kBodies; ++seed) bodies.push_back(RandomBody(seed).make());
  Trials trials;
  uint32_t lowered = 0;
  for (uint32_t seed = 0; seed < kBodies; ++seed) {
    if (!lower_to_loop(bodies[seed].graph).ok()) continue;
    ++lowered;
    trials.add("seed " + std::to_string(seed), bodies[seed], 1e-4, 4);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(lowered, kBodies * 2 / 3) << "the test says little";
  trials.run();
}

}  // namespace
}  // namespace kiln::codegen
