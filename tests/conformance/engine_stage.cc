#include "tests/conformance/engine_stage.h"

#include <unistd.h>

#include <set>

#include "builder/builder.h"
#include "engine/engine.h"
#include "formats/report/report.h"

namespace kiln::conformance {
namespace {

namespace fs = std::filesystem;

// Requests of equal shapes and fixed values share one shape set.
BuildOptions options_for(const std::vector<Request>& requests,
                         const std::vector<std::string>& disabled_passes, const fs::path& scratch) {
  BuildOptions options;
  options.output = scratch / "case.engine";
  options.timing_cache = scratch / "timings.json";
  options.target = BuildTarget::kAuto;  // the GPU where there is one
  options.disabled_passes = disabled_passes;
  options.quiet = true;
  std::set<std::pair<std::map<std::string, Shape>, std::map<std::string, std::vector<std::byte>>>>
      seen;
  for (const Request& request : requests) {
    std::map<std::string, std::vector<std::byte>> values;
    for (const auto& [name, value] : request.point.fixed_values) values[name] = value.bytes;
    if (!seen.insert({request.point.inputs, values}).second) continue;
    options.shape_sets[request.point.name] = request.point.inputs;
    if (!values.empty()) options.fixed_values[request.point.name] = request.point.fixed_values;
  }
  return options;
}

Result<std::vector<HostTensor>> infer(const Engine& engine, const onnx::Model& model,
                                      const Request& request) {
  std::vector<Tensor> inputs, outputs;
  for (const auto& [name, tensor] : request.inputs) {
    inputs.push_back({name, tensor.type, const_cast<std::byte*>(tensor.bytes.data())});
  }
  KILN_ASSIGN_OR_RETURN(const auto types, engine.output_types(inputs));
  std::vector<std::vector<std::byte>> buffers;
  for (const TensorInfo& info : types) {
    // The answer must be written, not left over.
    buffers.emplace_back(static_cast<size_t>(info.type.bytes()) + 1, std::byte{0x5a});
    outputs.push_back({info.name, info.type, buffers.back().data()});
  }
  KILN_RETURN_IF_ERROR(engine.infer(inputs, outputs));
  std::vector<HostTensor> results;
  for (const onnx::ValueInfo& output : model.graph.outputs) {
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i].name != output.name) continue;
      std::vector<std::byte> bytes = buffers[i];
      bytes.pop_back();
      results.push_back({types[i].type, SharedBytes::take(std::move(bytes))});
      break;
    }
  }
  return results;
}

Result<std::set<std::string>> changing_passes(const std::string& report_json) {
  KILN_ASSIGN_OR_RETURN(const report::Report report, report::from_json(report_json));
  std::set<std::string> names;
  for (const report::Point& point : report.points) {
    for (const report::PassRun& pass : point.passes) {
      if (pass.changed) names.insert(pass.name);
    }
  }
  return names;
}

}  // namespace

ScratchFolder::ScratchFolder()
    : path(fs::temp_directory_path() / ("kiln-conformance-" + std::to_string(getpid()))) {
  std::error_code ignored;
  fs::create_directory(path, ignored);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

Result<EngineRun> run_engine(const fs::path& path, const onnx::Model& model,
                             const std::vector<Request>& requests,
                             const std::vector<std::string>& disabled_passes,
                             const ScratchFolder& scratch) {
  KILN_ASSIGN_OR_RETURN(const BuildResult built,
                        build(path, options_for(requests, disabled_passes, scratch.path)));
  LoadOptions load;
  load.host_kernels = host_kernels();
  KILN_ASSIGN_OR_RETURN(const Engine engine, Engine::load(built.engine, load));
  EngineRun run;
  KILN_ASSIGN_OR_RETURN(run.passes, changing_passes(built.report_json));
  for (const Request& request : requests) {
    KILN_ASSIGN_OR_RETURN(auto outputs, infer(engine, model, request));
    run.outputs.push_back(std::move(outputs));
  }
  return run;
}

}  // namespace kiln::conformance
