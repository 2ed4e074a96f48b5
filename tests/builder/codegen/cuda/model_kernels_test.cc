// Every loop region that fusion forms in the exported models compiles for the GPU without spilling,
// under the first schedules, and computes what its nodes do.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "builder/codegen/cuda/compile.h"
#include "builder/codegen/cuda/in_place.h"
#include "builder/codegen/lower_loop.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "tests/builder/codegen/cuda/run_on_host.h"
#include "tests/builder/imported_model.h"

namespace kiln::codegen {
namespace {

constexpr size_t kSchedules = 2;  // of each kernel, and the one that takes any

// The bodies of a model's loop regions, equal kernels once.
std::vector<ir::Graph> loop_bodies(const std::string& model, std::set<std::string>& seen) {
  auto graph = test::import_tiny(model, 3);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  PassContext context;
  const auto run = run_passes(*graph, default_pipeline(), context);
  EXPECT_TRUE(run.ok()) << run.error().message;
  std::vector<ir::Graph> bodies;
  for (const ir::NodeId id : graph->topological_order()) {
    const auto* region = std::get_if<ir::Region>(&graph->node(id).op);
    if (region == nullptr || region->kind != ir::Region::Kind::kLoop) continue;
    const auto kernel = lower_to_loop(*region->body);
    if (kernel.ok() && seen.insert(loop::encode(*kernel)).second) bodies.push_back(*region->body);
  }
  return bodies;
}

struct Made {
  const ir::Graph* body;
  loop::LoopKernel kernel;
  CudaSchedule schedule;
};

// Returns how many inputs output 0 may take over.
int check(const HostProgram& program, size_t item, const Made& made) {
  std::vector<Bytes> inputs;
  std::mt19937 random(5);
  for (const ir::ValueId input : made.body->inputs()) {
    // An index of -1 or 0 is in range of every axis.
    inputs.push_back(random_bytes(made.body->type(input), -1, 0, random));
  }
  const auto want = run_node_by_node(*made.body, inputs);
  EXPECT_TRUE(want.ok()) << want.error().message;
  if (!want.ok()) return 0;
  const auto expect_same = [&](const Result<std::vector<Bytes>>& got) {
    ASSERT_TRUE(got.ok()) << got.error().message << "\n" << ir::to_text(*made.body);
    for (size_t o = 0; o < want->size(); ++o) {
      const DType dtype = made.body->type(made.body->outputs()[o]).dtype;
      EXPECT_EQ(difference(dtype, (*got)[o], (*want)[o], 1e-4), "")
          << to_text(made.schedule) << "\n"
          << ir::to_text(*made.body);
    }
  };
  expect_same(program.run(item, inputs));
  int overwritten = 0;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (!may_overwrite(made.kernel, made.schedule, i)) continue;
    SCOPED_TRACE("in the memory of input " + std::to_string(i));
    expect_same(program.run_overwriting(item, inputs, i));
    ++overwritten;
  }
  return overwritten;
}

TEST(ModelKernels, ComputeWhatTheirNodesDoAndCompile) {
  std::set<std::string> seen;
  std::vector<ir::Graph> bodies;
  for (const std::string& model : test::tiny_model_names()) {
    for (ir::Graph& body : loop_bodies(model, seen)) bodies.push_back(std::move(body));
  }
  ASSERT_GT(bodies.size(), 10u);
  std::vector<HostProgram::Item> items;
  std::vector<Made> made;
  std::vector<std::string> texts;
  for (const ir::Graph& body : bodies) {
    const auto kernel = lower_to_loop(body);
    std::vector<CudaSchedule> schedules = cuda_schedules(*kernel, {});
    if (schedules.size() > kSchedules) {
      schedules.erase(schedules.begin() + kSchedules, schedules.end() - 1);
    }
    for (const CudaSchedule& schedule : schedules) {
      auto source = emit_cuda(*kernel, schedule);
      ASSERT_TRUE(source.ok()) << source.error().message;
      texts.push_back(source->text);
      items.push_back({*kernel, *std::move(source)});
      made.push_back({&body, *kernel, schedule});
    }
  }
  const auto program = HostProgram::compile(items);
  ASSERT_TRUE(program.ok()) << program.error().message;
  int overwritten = 0;
  for (size_t i = 0; i < items.size(); ++i) overwritten += check(*program, i, made[i]);
  EXPECT_GT(overwritten, 10);
  if (!compiler_version().ok()) GTEST_SKIP() << compiler_version().error().message;
  CubinCache cache("sm_90a");
  const auto cubins =
      cache.compile_all(texts, static_cast<int>(std::thread::hardware_concurrency()));
  for (size_t i = 0; i < cubins.size(); ++i) {
    ASSERT_TRUE(cubins[i].ok()) << cubins[i].error().message << texts[i];
    EXPECT_EQ(cubins[i]->spilled_bytes, 0u) << to_text(made[i].schedule) << texts[i];
  }
}

}  // namespace
}  // namespace kiln::codegen
