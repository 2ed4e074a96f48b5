#include "builder/driver/build_for_target.h"

#include "builder/driver/build_state.h"
#include "formats/report/page.h"
#include "formats/report/table.h"

namespace kiln {
namespace {

// Of a shape point's share, where its precision is measured first.
constexpr double kMeasuring = 0.3;

// The report as the file's name asks for it.
std::string report_file(const report::Report& report, const BuildOptions& options,
                        const std::string& json) {
  const auto extension = options.report.extension();
  if (extension != ".html" && extension != ".htm") return json;
  const report::TitledReport titled{options.output.string(), report};
  return report::to_page(std::span(&titled, 1));
}

Result<BuildResult> finish(BuildState& state, const BuildOptions& options, bool written) {
  BuildResult result;
  if (written) result.engine = options.output;
  report::Report report = state.make_report();
  result.notes = report.notes;
  result.report_json = report::to_json(report);
  result.report_text = report::to_table(report, {.explain = options.explain});
  if (options.report.empty()) return result;
  auto reported = state.write_report(report_file(report, options, result.report_json));
  if (reported.ok()) return result;
  if (!written) return std::move(reported).error();
  return std::move(reported).error().context("wrote '" + options.output.string() +
                                             "' but not its report");
}

Result<BuildResult> run_steps(BuildState& state, std::span<const ShapePoint> points,
                              const BuildOptions& options, ProgressMeter& meter) {
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

Result<BuildResult> build_for_target(const onnx::Model& model, std::span<const ShapePoint> points,
                                     const BuildOptions& options, ChosenTarget target,
                                     LoadedTimingCache cache, std::span<const Plugin> plugins,
                                     ProgressMeter& meter) {
  BuildState state(model, options, std::move(target), std::move(cache), plugins, meter);
  auto result = run_steps(state, points, options, meter);
  // What a build found out is as true when it fails.
  if (!result.ok() && state.has_timed()) state.save_timing_cache();
  return result;
}

}  // namespace kiln
