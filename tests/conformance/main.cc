// kiln_conformance: runs folders of cases in ONNX's backend-test layout and counts what passed,
// failed, was refused and crashed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/onnx/schema.h"
#include "tests/conformance/isolate.h"
#include "tests/conformance/known_refusals.h"
#include "tests/conformance/run_case.h"

namespace kiln::conformance {
namespace {

struct Settings {
  std::vector<std::string> folders, disabled_passes;
  std::string stage = "engine", filter, json, known_refusals;
  double limit_seconds = 60;
  double error_seconds = 0, error_megabytes = 0;  // 0: no limit
  bool each_pass = false, verbose = false;
};

struct Row {
  std::string name;
  Outcome outcome;
};

// An expected error must also come quickly and cheaply.
void apply_error_limits(const CaseFolder& folder, const Settings& settings, Outcome& outcome) {
  if (!folder.expect_error || outcome.status != Status::kPassed) return;
  if (settings.error_seconds > 0 && outcome.seconds > settings.error_seconds) {
    outcome.status = Status::kFailed;
    outcome.reason = "the error took " + std::to_string(outcome.seconds) + " s";
  }
  if (settings.error_megabytes > 0 && outcome.megabytes > settings.error_megabytes) {
    outcome.status = Status::kFailed;
    outcome.reason = "the error took " + std::to_string(outcome.megabytes) + " MB";
  }
}

Outcome run_folder(const std::filesystem::path& path, const Settings& settings) {
  const auto folder = read_case(path);
  if (!folder.ok()) return {Status::kFailed, folder.error().message};
  RunOptions options;
  options.stage = settings.stage == "import" ? Stage::kImport : Stage::kEngine;
  options.disabled_passes = settings.disabled_passes;
  options.each_pass = settings.each_pass;
  Outcome outcome =
      run_isolated([&] { return run_case(*folder, options); }, settings.limit_seconds);
  apply_error_limits(*folder, settings, outcome);
  return outcome;
}

std::vector<Row> run_all(const Settings& settings) {
  std::vector<Row> rows;
  for (const std::string& folder : settings.folders) {
    for (const auto& path : find_cases(folder)) {
      const std::string name = path.filename().string();
      if (name.find(settings.filter) == std::string::npos) continue;
      rows.push_back({name, run_folder(path, settings)});
      const Outcome& outcome = rows.back().outcome;
      if (outcome.status == Status::kPassed && !settings.verbose) continue;
      std::printf("%-8s %s%s%s\n", std::string(to_string(outcome.status)).c_str(), name.c_str(),
                  outcome.reason.empty() ? "" : ": ", outcome.reason.c_str());
    }
  }
  return rows;
}

std::map<Status, int> count_by_status(const std::vector<Row>& rows) {
  std::map<Status, int> counts;
  for (const Row& row : rows) ++counts[row.outcome.status];
  return counts;
}

bool write_json(const std::string& file, const std::vector<Row>& rows) {
  auto cases = nlohmann::json::array();
  for (const Row& row : rows) {
    cases.push_back({{"name", row.name},
                     {"status", std::string(to_string(row.outcome.status))},
                     {"reason", row.outcome.reason},
                     {"seconds", row.outcome.seconds},
                     {"megabytes", row.outcome.megabytes}});
  }
  auto counts = nlohmann::json::object();
  for (const auto& [status, count] : count_by_status(rows)) {
    counts[std::string(to_string(status))] = count;
  }
  std::ofstream stream(file);
  stream << nlohmann::json{{"schema", 1}, {"counts", counts}, {"cases", cases}}.dump(
                1, ' ', false, nlohmann::json::error_handler_t::replace)
         << "\n";
  return stream.good();
}

// Refusals that the list lacks, and entries of the list that are refused no longer.
int check_refusals(const Settings& settings, const std::vector<Row>& rows) {
  if (settings.known_refusals.empty()) return 0;
  const auto known = read_known_refusals(settings.known_refusals);
  if (!known.ok()) {
    std::cerr << known.error().message << "\n";
    return 1;
  }
  int wrong = 0;
  for (const Row& row : rows) {
    const bool refused = row.outcome.status == Status::kRefused;
    if (refused == is_known(*known, row.name)) continue;
    ++wrong;
    std::printf("%s: %s\n", row.name.c_str(),
                refused ? "refused, and not on the list of known refusals"
                        : "on the list of known refusals, but not refused: remove it");
  }
  return wrong;
}

void add_options(CLI::App& app, Settings& s) {
  app.add_option("folders", s.folders, "folders of cases, or single cases")->required();
  app.add_option("--stage", s.stage, "how far to go")->check(CLI::IsMember({"import", "engine"}));
  app.add_option("--filter", s.filter, "only cases whose name contains this");
  app.add_option("--json", s.json, "write the results here");
  app.add_option("--known-refusals", s.known_refusals, "the reviewed list; others fail the run");
  app.add_option("--limit-seconds", s.limit_seconds, "time for one case");
  app.add_option("--error-seconds", s.error_seconds, "time for one expected error");
  app.add_option("--error-megabytes", s.error_megabytes, "peak memory for one expected error");
  app.add_option("--disable-pass", s.disabled_passes, "passes to leave out");
  app.add_flag("--each-pass", s.each_pass, "again with each pass off in turn, and with none");
  app.add_flag("--verbose", s.verbose, "list the cases that passed, too");
}

int run(const Settings& settings) {
  // ONNX's schemas are read once, here, and not in each case's process.
  (void)onnx::find_schema("Add", "", 13).ok();
  const auto rows = run_all(settings);
  auto counts = count_by_status(rows);
  std::printf("%zu cases: %d passed, %d failed, %d refused, %d crashed\n", rows.size(),
              counts[Status::kPassed], counts[Status::kFailed], counts[Status::kRefused],
              counts[Status::kCrashed]);
  if (!settings.json.empty() && !write_json(settings.json, rows)) {
    std::cerr << "cannot write '" << settings.json << "'\n";
    return 1;
  }
  const int wrong = check_refusals(settings, rows);
  const bool bad = rows.empty() || counts[Status::kFailed] || counts[Status::kCrashed] || wrong;
  return bad ? 1 : 0;
}

}  // namespace
}  // namespace kiln::conformance

int main(int argc, char** argv) {
  CLI::App app("Runs cases in ONNX's backend-test layout");
  kiln::conformance::Settings settings;
  kiln::conformance::add_options(app, settings);
  CLI11_PARSE(app, argc, argv);
  return kiln::conformance::run(settings);
}
