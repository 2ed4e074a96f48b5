// kiln::verify_engine: an engine file against its model, on the device that it was built for.
#include "builder/builder.h"
#include "builder/driver/build_target.h"
#include "builder/driver/engine_accuracy.h"
#include "builder/driver/progress.h"
#include "builder/import/onnx/import.h"
#include "builder/verify/verify_engine.h"
#include "engine/host_kernels.h"
#include "formats/engine_file/read_engine.h"
#include "formats/engine_file/write_engine.h"
#include "formats/onnx/content_hash.h"
#include "formats/onnx/read_model.h"
#include "formats/report/table.h"

namespace kiln {
namespace {

// A point of the engine as the importer takes it.
ShapePoint shape_point(const plan::Plan& plan, const plan::ShapePoint& built) {
  ShapePoint point;
  point.name = built.name;
  point.batch = built.batch;
  const size_t slash = built.name.find('/');
  if (slash != std::string::npos) point.shape_set = built.name.substr(slash + 1);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const plan::IoTensor& input = plan.inputs[i];
    point.inputs[input.name] = built.inputs[i].shape;
    if (input.batch_axis >= 0) point.batch_axes[input.name] = input.batch_axis;
  }
  for (const plan::FixedInput& fixed : built.fixed_inputs) {
    point.fixed_values[plan.inputs[fixed.input].name] = {built.inputs[fixed.input], fixed.value};
  }
  return point;
}

Result<> check_model(const plan::Plan& plan, const onnx::Model& model) {
  if (plan.origin.model_hash == onnx::content_hash(model)) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               "was built from another model than '" + model.path.string() +
                   "': their contents differ; give the model that it was built from"};
}

// The reference that a build on the engine's target compares with.
Result<ReferenceOptions> reference_for(const plan::Plan& plan, std::span<const Plugin> plugins) {
  BuildOptions options;
  options.target =
      plan.origin.target == plan::Target::kHost ? BuildTarget::kHost : BuildTarget::kCuda;
  KILN_ASSIGN_OR_RETURN(const ChosenTarget target, choose_target(options, {}));
  return target.reference(plugins);
}

Error disagrees(const ShapePoint& point, const PointVerdict& verdict) {
  std::string detail;
  for (const report::Verification& check : verdict.checks) {
    if (!check.passed && detail.empty()) detail = check.what + ": " + check.detail;
  }
  return {ErrorCode::kVerification, "shape point '" + point.name +
                                        "' disagrees with the reference (" + detail +
                                        "); the file was not changed; build the engine again here"};
}

// Compares every point; what was found goes into the report.
Result<> verify_points(const plan::Plan& plan, const onnx::Model& model,
                       const std::filesystem::path& path, std::span<const Plugin> plugins,
                       const BuildOptions& options, ProgressMeter& meter, report::Report& report) {
  KILN_ASSIGN_OR_RETURN(const ReferenceOptions reference, reference_for(plan, plugins));
  KILN_ASSIGN_OR_RETURN(const Engine engine, Engine::load(path, {.host_kernels = host_kernels(),
                                                                 .plugins = options.plugins,
                                                                 .allow_unverified = true}));
  bool narrow = false;
  const auto import = [&](const ShapePoint& point) -> Result<ir::Graph> {
    KILN_ASSIGN_OR_RETURN(auto imported, onnx_import::import_onnx(model, point, {plugins}));
    return std::move(imported.graph);
  };
  std::vector<ShapePoint> points;
  for (const plan::ShapePoint& built : plan.points) {
    points.push_back(shape_point(plan, built));
    KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(points.back()));
    narrow = narrow || has_narrow_floats(graph);
  }
  EngineVerifier verifier(engine, import, engine_accuracy(plan.origin.precision, narrow),
                          reference);
  const double width = 1.0 / static_cast<double>(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double from = width * static_cast<double>(i);
    meter.begin("verify " + points[i].name, from, from + width);
    auto verdict = verifier.verify(points[i]);
    if (!verdict.ok()) {
      return std::move(verdict).error().context("shape point '" + points[i].name + "'");
    }
    if (!verdict->failing_inputs.empty()) return disagrees(points[i], *verdict);
    if (i < report.points.size()) report.points[i].verification = std::move(verdict->checks);
  }
  return Ok();
}

Result<report::Report> verify_and_stamp(const onnx::Model& model, const std::filesystem::path& path,
                                        const BuildOptions& options, ProgressMeter& meter) {
  KILN_ASSIGN_OR_RETURN(const auto plugins, load_plugins(options.plugins));
  KILN_ASSIGN_OR_RETURN(plan::Plan plan, read_engine(path));
  KILN_RETURN_IF_ERROR(check_model(plan, model));
  KILN_ASSIGN_OR_RETURN(report::Report report, report::from_json(plan.report_json));
  KILN_RETURN_IF_ERROR(verify_points(plan, model, path, plugins, options, meter, report));
  std::erase(report.notes, kNotVerified);
  report.build.verified = plan.origin.verified = true;
  plan.report_json = report::to_json(report);
  KILN_RETURN_IF_ERROR(write_engine(plan, path));
  return report;
}

}  // namespace

Result<BuildResult> verify_engine(const std::filesystem::path& model_path,
                                  const std::filesystem::path& engine, const BuildOptions& options,
                                  const ProgressFn& progress) {
  ProgressMeter meter(progress);
  KILN_ASSIGN_OR_RETURN(const onnx::Model model, onnx::read_model(model_path));
  auto report = verify_and_stamp(model, engine, options, meter);
  if (!report.ok()) return std::move(report).error().context("engine '" + engine.string() + "'");
  BuildResult result;
  result.engine = engine;
  result.notes = report->notes;
  result.report_json = report::to_json(*report);
  result.report_text = report::to_table(*report, {.explain = options.explain});
  return result;
}

}  // namespace kiln
