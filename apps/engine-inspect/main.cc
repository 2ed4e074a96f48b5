// engine-inspect: shows what is in an engine file.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "apps/engine-inspect/inspect_json.h"
#include "apps/engine-inspect/memory_picture.h"
#include "apps/engine-inspect/options.h"
#include "apps/engine-inspect/report_page.h"
#include "apps/engine-inspect/step_text.h"
#include "apps/engine-inspect/summary.h"
#include "apps/print_out.h"
#include "formats/engine_file/read_engine.h"
#include "formats/report/table.h"

namespace kiln::inspect {
namespace {

Result<> check_point(const plan::Plan& plan, const std::string& name) {
  std::string names;
  for (const plan::ShapePoint& point : plan.points) {
    if (name.empty() || point.name == name) return Ok();
    names += (names.empty() ? "'" : ", '") + point.name + "'";
  }
  return Error{ErrorCode::kInvalidArgument,
               "no shape point '" + name + "', the points are " + names};
}

std::string report_text(const plan::Plan& plan, const Options& options) {
  auto report = report::from_json(plan.report_json);
  if (!report.ok()) return "\nno report: " + report.error().message + "\n";
  if (!options.point.empty()) {
    std::erase_if(report->points, [&](const auto& point) { return point.name != options.point; });
  }
  return "\n" + report::to_table(*report, {.explain = options.explain});
}

std::string to_text(const plan::Plan& plan, const Options& options) {
  constexpr size_t kMostConstants = 5;
  std::string text = header_text(options.engine, plan) + tensors_text(plan) +
                     points_text(plan, options.point) +
                     constants_text(plan, options.constants ? 0 : kMostConstants);
  for (const plan::ShapePoint& point : plan.points) {
    if (!options.point.empty() && point.name != options.point) continue;
    if (options.steps) text += steps_text(plan, point, options.explain);
    if (options.memory) text += memory_picture(point);
  }
  if (options.report) text += report_text(plan, options);
  return text;
}

int run(const Options& options) {
  const auto complain = [](const Error& error) {
    print_error("engine-inspect", error);
    return kFailed;
  };
  if (!options.html.empty()) {
    const auto written = write_report_page(options);
    if (!written.ok()) return complain(written.error());
    const std::string text = "wrote " + options.html.string() + "\n";
    return print_out("engine-inspect", text) ? kOk : kFailed;
  }
  const auto plan = read_engine(options.engine);
  if (!plan.ok()) return complain(plan.error());
  if (const auto found = check_point(*plan, options.point); !found.ok()) {
    return complain(found.error());
  }
  const std::string text = options.json ? to_json(*plan, options) : to_text(*plan, options);
  return print_out("engine-inspect", text) ? kOk : kFailed;
}

}  // namespace
}  // namespace kiln::inspect

int main(int argc, char** argv) try {
  const auto parsed = kiln::inspect::parse_command_line(argc, argv);
  const auto* options = std::get_if<kiln::inspect::Options>(&parsed);
  return options == nullptr ? std::get<int>(parsed) : kiln::inspect::run(*options);
} catch (const std::exception& error) {  // out of memory, in the program itself
  std::fprintf(stderr, "engine-inspect: error: %s\n", error.what());
  return kiln::inspect::kFailed;
}
