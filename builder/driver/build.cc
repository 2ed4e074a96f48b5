// kiln::build: the path of a model from its file to a verified engine file.
#include "builder/builder.h"

#include <new>

#include "builder/device/device.h"
#include "builder/driver/build_state.h"
#include "builder/driver/check_paths.h"
#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "formats/engine_file/write_engine.h"
#include "formats/onnx/read_model.h"
#include "formats/report/table.h"

namespace kiln {
namespace {

// Of a shape point's share, where its precision is measured first.
constexpr double kMeasuring = 0.3;

Result<> check_options(const BuildOptions& options) {
  if (options.output.empty() && !options.check_only && !options.dry_run) {
    return Error{ErrorCode::kInvalidArgument, "no output file given; use --output m.engine"};
  }
  return check_pass_options(default_pipeline(), {.disabled = options.disabled_passes});
}

Result<BuildResult> check_model(const onnx::Model& model, std::span<const ShapePoint> points,
                                const onnx_import::ImportOptions& import_options) {
  BuildResult result;
  for (const ShapePoint& point : points.first(1)) {
    KILN_ASSIGN_OR_RETURN(auto check, onnx_import::check_onnx(model, point, import_options));
    result.unsupported = std::move(check.unsupported);
    for (const std::string& input : check.needed_values) {
      result.notes.push_back("shapes depend on the value of input '" + input +
                             "': give it with --shape-values");
    }
  }
  return result;
}

Result<BuildResult> finish(BuildState& state, const BuildOptions& options, bool written) {
  BuildResult result;
  if (written) result.engine = options.output;
  report::Report report = state.make_report();
  result.notes = report.notes;
  result.report_json = report::to_json(report);
  result.report_text = report::to_table(report, {.explain = options.explain});
  if (options.report.empty()) return result;
  auto reported = state.write_report(result.report_json);
  if (reported.ok()) return result;
  if (!written) return std::move(reported).error();
  return std::move(reported).error().context("wrote '" + options.output.string() +
                                             "' but not its report");
}

Result<BuildResult> build_engine(const std::filesystem::path& model_path,
                                 const BuildOptions& options, const ProgressFn& progress) {
  KILN_RETURN_IF_ERROR(check_options(options));
  KILN_RETURN_IF_ERROR(check_paths(model_path, options));
  ProgressMeter meter(progress);
  meter.begin("import", 0, kTacticsFrom);
  KILN_ASSIGN_OR_RETURN(const onnx::Model model, onnx::read_model(model_path));
  KILN_RETURN_IF_ERROR(check_external_data(model.external_paths, options));
  KILN_ASSIGN_OR_RETURN(const auto plugins, load_plugins(options.plugins));
  const onnx_import::ImportOptions import_options{plugins};
  KILN_ASSIGN_OR_RETURN(const auto points, onnx_import::plan_shape_points(model, options));
  if (options.check_only) return check_model(model, points, import_options);

  LoadedTimingCache cache;
  if (!options.timing_cache.empty()) cache = load_timing_cache(options.timing_cache);
  KILN_ASSIGN_OR_RETURN(ChosenTarget target, choose_target(options, cache.cache));
  BuildState state(model, options, std::move(target), std::move(cache), plugins, meter);
  KILN_RETURN_IF_ERROR(state.analyse_rows(points));
  KILN_RETURN_IF_ERROR(state.check_user_data(points));
  const double width = (kTacticsTo - kTacticsFrom) / static_cast<double>(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double from = kTacticsFrom + width * static_cast<double>(i);
    const double measured = is_narrow(options.precision) ? kMeasuring * width : 0;
    KILN_RETURN_IF_ERROR(state.measure_precision(points[i], from, from + measured));
    KILN_RETURN_IF_ERROR(state.add_point(points[i], from + measured, from + width));
  }
  KILN_RETURN_IF_ERROR(state.check_complete());
  state.save_timing_cache();
  if (options.dry_run) {
    state.plan_memory();
    return finish(state, options, false);
  }
  KILN_RETURN_IF_ERROR(state.verify(kTacticsTo, kVerifyTo));
  state.save_timing_cache();  // with what verification found
  meter.begin("write", kVerifyTo, 1);
  KILN_RETURN_IF_ERROR(state.write_engine());
  meter.update(1);
  return finish(state, options, true);
}

}  // namespace

Result<BuildResult> build(const std::filesystem::path& model, const BuildOptions& options,
                          const ProgressFn& progress) try {
  return build_engine(model, options, progress);
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kOutOfMemory, "build '" + model.string() + "': out of memory"};
}

}  // namespace kiln
