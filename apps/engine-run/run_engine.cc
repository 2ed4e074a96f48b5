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

std::optional<GpuMonitor> open_monitor(const Engine& engine, std::vector<std::string>& notes) {
  const std::string& address = engine.info().device_address;
  if (address.empty()) return std::nullopt;
  const auto nvml = open_nvml();
  auto monitor = nvml.ok() ? GpuMonitor::open(*nvml, address) : Result<GpuMonitor>(nvml.error());
  if (monitor.ok()) return *std::move(monitor);
  notes.push_back("the GPU's clocks are not known: " + monitor.error().message);
  return std::nullopt;
}

Result<> measure(const Engine& engine, std::span<const TensorInfo> outputs, const Options& options,
                 Outcome& outcome) {
  for (auto& warning : machine_warnings(options.timing.threads)) {
    outcome.warnings.push_back(std::move(warning));
  }
  const auto monitor = open_monitor(engine, outcome.notes);
  Watch watch;
  if (monitor) {
    outcome.gpu.emplace();
    watch.begin = [&] { outcome.gpu->first = monitor->read(); };
    watch.end = [&] { outcome.gpu->second = monitor->read(); };
  }
  const auto inputs = views(outcome.inputs);
  KILN_ASSIGN_OR_RETURN(outcome.measurements,
                        benchmark(engine, inputs, outputs, options.timing, watch));
  const auto warn = [&](std::vector<std::string> warnings) {
    for (auto& warning : warnings) outcome.warnings.push_back(std::move(warning));
  };
  const Measurements& m = *outcome.measurements;
  warn(trust_warnings(m.latency_ms));
  if (outcome.gpu) warn(clock_warnings(outcome.gpu->first, outcome.gpu->second));
  if (m.device_ms.empty()) return Ok();
  const Summary compute = summarize(m.device_ms);
  warn(part_warnings({compute.median,
                      summarize(m.copy_in_ms).median + summarize(m.copy_out_ms).median,
                      summarize(m.enqueue_ms).median, compute.cv}));
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
