#include "apps/engine-inspect/options.h"

#include <CLI/CLI.hpp>

#include "apps/parse_flags.h"
#include "apps/print_out.h"
#include "formats/version.h"

namespace kiln::inspect {
namespace {

constexpr const char* kFooter = R"(
EXAMPLES
  engine-inspect m.engine                        what it is: tensors, shape points, sizes
  engine-inspect m.engine --steps --point b8     what runs for a batch of 8
  engine-inspect m.engine --memory               who occupies the arena when
  engine-inspect m.engine --report --explain     what the build tried, and why each loser lost
  engine-inspect m.engine --html m.html          the report as a page for a browser
  engine-inspect a.engine b.engine --html d.html what differs between two builds
  engine-inspect m.engine --json --steps         the same for programs

Any engine can be read, whatever device and plugins it needs. --html also takes reports that
engine-build --report wrote as JSON; they hold the times of the build, which engines leave out.

EXIT CODES
  0 done   1 not an engine, damaged or made by a newer version   2 bad command line)";

}  // namespace

std::variant<Options, int> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"Shows what is in an engine file.", "engine-inspect"};
  Options options;
  app.add_option("engine", options.engine, "The engine file")->required()->type_name("");
  app.add_option("other", options.other, "With --html another one to compare with")->type_name("");
  app.add_option("--point", options.point, "This shape point only")->type_name("NAME");
  app.add_flag("--steps", options.steps, "Every step of every shape point");
  app.add_flag("--memory", options.memory, "The arena over the steps, against its lower bound");
  app.add_flag("--constants", options.constants, "All constants, the largest first");
  app.add_flag("--report", options.report, "The report of the build, as a table");
  app.add_flag("--explain", options.explain,
               "With --report every candidate, refusal and near miss; with --steps every attribute "
               "and loop kernel");
  app.add_flag("--json", options.json, "Print JSON; the report is included as it is");
  app.add_option("--html", options.html,
                 "Write the report of the build as one page, which loads nothing")
      ->type_name("FILE")
      ->excludes("--steps", "--memory", "--constants", "--report", "--explain", "--json");
  app.set_version_flag("--version", kVersion);
  app.footer(kFooter);
  if (const auto done = parse_flags(app, argc, argv, kUsage)) return *done;
  if (options.explain && !options.report && !options.steps) {
    print_error("engine-inspect",
                {ErrorCode::kInvalidArgument, "--explain needs --report or --steps"});
    return kUsage;
  }
  if (!options.other.empty() && options.html.empty()) {
    print_error("engine-inspect",
                {ErrorCode::kInvalidArgument, "found two engines, which --html alone compares"});
    return kUsage;
  }
  return options;
}

}  // namespace kiln::inspect
