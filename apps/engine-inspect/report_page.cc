#include "apps/engine-inspect/report_page.h"

#include <span>
#include <vector>

#include "formats/engine_file/read_engine.h"
#include "formats/file/atomic_file.h"
#include "formats/file/mapped_file.h"
#include "formats/report/page.h"

namespace kiln::inspect {
namespace {

// An engine file begins with its magic, a report with its brace.
Result<report::Report> report_of(const std::filesystem::path& path) {
  KILN_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const bool engine = !text.starts_with('{');
  std::string stored;
  if (engine) {
    KILN_ASSIGN_OR_RETURN(const plan::Plan plan,
                          parse_engine(file, path.string(), {.check_weights = false}));
    stored = plan.report_json;
  }
  if (engine && stored.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "engine '" + path.string() + "' holds no report of its build"};
  }
  auto report = report::from_json(engine ? stored : text);
  if (!report.ok()) return std::move(report).error().context("'" + path.string() + "'");
  return report;
}

Result<> keep_point(report::Report& report, const std::string& name,
                    const std::filesystem::path& path) {
  if (name.empty()) return Ok();
  std::erase_if(report.points, [&](const report::Point& point) { return point.name != name; });
  if (!report.points.empty()) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               "the report of '" + path.string() + "' has no shape point '" + name + "'"};
}

}  // namespace

Result<> write_report_page(const Options& options) {
  std::vector<report::TitledReport> reports;
  for (const std::filesystem::path& path : {options.engine, options.other}) {
    if (path.empty()) continue;
    if (is_same_file(path, options.html)) {
      return Error{ErrorCode::kInvalidArgument,
                   "--html '" + options.html.string() +
                       "' is the file that it would be made of, expected another one"};
    }
    KILN_ASSIGN_OR_RETURN(report::Report report, report_of(path));
    KILN_RETURN_IF_ERROR(keep_point(report, options.point, path));
    reports.push_back({path.string(), std::move(report)});
  }
  const std::string page = report::to_page(reports);
  const auto bytes = std::as_bytes(std::span(page));
  return write_file_atomically(options.html, std::span(&bytes, 1));
}

}  // namespace kiln::inspect
