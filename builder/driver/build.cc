// kiln::build: the path of a model from its file to a verified engine file.
#include "builder/builder.h"

#include <new>

#include "builder/driver/build_for_target.h"
#include "builder/driver/check_paths.h"
#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "formats/onnx/read_model.h"

namespace kiln {
namespace {

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
  return build_for_target(model, points, options, std::move(target), std::move(cache), plugins,
                          meter);
}

}  // namespace

Result<BuildResult> build(const std::filesystem::path& model, const BuildOptions& options,
                          const ProgressFn& progress) try {
  return build_engine(model, options, progress);
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kOutOfMemory, "build '" + model.string() + "': out of memory"};
}

}  // namespace kiln
