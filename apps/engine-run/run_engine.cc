#include "apps/engine-run/run_engine.h"

#include "apps/engine-run/file_inputs.h"
#include "apps/engine-run/statistics.h"
#include "formats/engine_file/read_engine.h"

namespace kiln::run {
namespace {

Result<Engine> load(const Options& options) {
  return Engine::load(options.engine, {.contexts = options.contexts,
                                       .host_kernels = host_kernels(),
                                       .plugins = options.plugins,
                                       .allow_unverified = options.allow_unverified});
}

Result<std::vector<NamedArray>> get_inputs(const Options& options, const EngineInfo& info,
                                           std::vector<std::string>& notes) {
  if (info.points.empty()) {
    return Error{ErrorCode::kCorruptData, "the engine has no shape point"};
  }
  if (!options.random_inputs()) return read_inputs(options, info.points[0].inputs, notes);
  // The values that the engine was specialised on are in its plan alone.
  KILN_ASSIGN_OR_RETURN(const plan::Plan plan,
                        read_engine(options.engine, {.check_weights = false}));
  return random_inputs(plan, info, options.random);
}

// Rows of the request: an input's extent along its batch axis, in the point's rows.
int64_t rows_of(const ShapePointInfo& point, const std::vector<NamedArray>& inputs) {
  if (point.batch == 0) return 0;
  for (size_t i = 0; i < point.inputs.size() && i < inputs.size(); ++i) {
    const TensorInfo& input = point.inputs[i];
    if (input.batch_axis < 0) continue;
    const auto axis = static_cast<size_t>(input.batch_axis);
    const int64_t each = input.type.shape[axis] / point.batch;
    if (each > 0) return inputs[i].type.shape[axis] / each;
  }
  return point.batch;
}

Result<> infer(const Engine& engine, std::span<const TensorInfo> outputs, Outcome& outcome) {
  for (const TensorInfo& output : outputs) {
    KILN_ASSIGN_OR_RETURN(auto array, make_array(output.name, output.type));
    outcome.outputs.push_back(std::move(array));
  }
  return engine.infer(views(outcome.inputs), views(outcome.outputs));
}

Result<> measure(const Engine& engine, std::span<const TensorInfo> outputs, const Options& options,
                 Outcome& outcome) {
  for (auto& warning : machine_warnings(options.timing.threads)) {
    outcome.warnings.push_back(std::move(warning));
  }
  const auto inputs = views(outcome.inputs);
  KILN_ASSIGN_OR_RETURN(outcome.measurements, benchmark(engine, inputs, outputs, options.timing));
  for (auto& warning : trust_warnings(outcome.measurements->latency_ms)) {
    outcome.warnings.push_back(std::move(warning));
  }
  return Ok();
}

}  // namespace

Result<Outcome> run_engine(const Options& options) {
  Outcome outcome;
  outcome.engine = options.engine.string();
  outcome.random_inputs = options.random_inputs();
  outcome.seed = options.random.seed;
  outcome.timing = options.timing;
  outcome.contexts = options.contexts;
  KILN_ASSIGN_OR_RETURN(const Engine engine, load(options));
  outcome.info = engine.info();
  KILN_ASSIGN_OR_RETURN(outcome.inputs, get_inputs(options, outcome.info, outcome.notes));
  const auto inputs = views(outcome.inputs);
  KILN_ASSIGN_OR_RETURN(const size_t point, engine.shape_point(inputs));
  KILN_ASSIGN_OR_RETURN(const auto outputs, engine.output_types(inputs));
  outcome.point = outcome.info.points[point];
  outcome.rows = rows_of(outcome.point, outcome.inputs);
  KILN_RETURN_IF_ERROR(infer(engine, outputs, outcome));
  if (!options.outputs.empty()) {
    KILN_RETURN_IF_ERROR(write_arrays(options.outputs, outcome.outputs));
  }
  if (!options.reference.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto expected, read_references(options.reference, outputs));
    KILN_ASSIGN_OR_RETURN(outcome.comparisons,
                          compare_all(outcome.outputs, expected, options.tolerance));
  }
  if (options.benchmark) KILN_RETURN_IF_ERROR(measure(engine, outputs, options, outcome));
  return outcome;
}

}  // namespace kiln::run
