#include "builder/pipeline/pass_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kiln {
namespace {

// Each round of clean passes shrinks the graph, so a few rounds suffice; the bound stops two rules
// that undo each other.
constexpr int kMaxCleanRounds = 20;

Error cannot_disable(const std::string& name, const char* why, std::span<const Pass> passes) {
  std::string known;
  for (const Pass& pass : passes) {
    if (pass.required) continue;
    known += known.empty() ? "" : ", ";
    known += pass.name;
  }
  return {ErrorCode::kInvalidArgument,
          "cannot disable pass '" + name + "': " + why + "; expected one of " + known};
}

Result<> check_disabled_names(std::span<const Pass> passes, const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    const auto found = std::find_if(passes.begin(), passes.end(),
                                    [&](const Pass& pass) { return pass.name == name; });
    if (found == passes.end()) return cannot_disable(name, "there is no pass of that name", passes);
    if (found->required) return cannot_disable(name, "it is required", passes);
  }
  return Ok();
}

// Whether KILN_DUMP, words with commas between them, asks for graphs.
Result<bool> dumps_graphs() {
  const char* words = std::getenv("KILN_DUMP");
  bool graphs = false;
  std::string_view rest = words == nullptr ? "" : words;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word != "graph") {
      return Error{ErrorCode::kInvalidArgument,
                   "KILN_DUMP: found '" + std::string(word) + "', expected graph"};
    }
    graphs = true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return graphs;
}

Result<> dump(const ir::Graph& graph, int64_t number, std::string_view pass,
              const std::string& label) {
  const char* base = std::getenv("KILN_DUMP_DIR");
  const std::filesystem::path folder = std::filesystem::path(base ? base : ".") / label;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  char prefix[32];
  std::snprintf(prefix, sizeof prefix, "%03lld-", static_cast<long long>(number));
  const auto path = folder / (prefix + std::string(pass) + ".graph");
  std::ofstream file(path);
  file << to_text(graph);
  file.close();
  if (!file) return Error{ErrorCode::kIo, "cannot write dump '" + path.string() + "'"};
  return Ok();
}

class Driver {
 public:
  Driver(ir::Graph& graph, PassContext& context, bool dumps)
      : graph_(graph), context_(context), dumps_(dumps) {}

  Result<> run_all(std::span<const Pass> passes) {
    if (dumps_) KILN_RETURN_IF_ERROR(dump(graph_, 0, "imported", context_.options.label));
    while (!passes.empty()) {
      size_t count = 1;
      if (passes.front().stage == Pass::Stage::kClean) {
        while (count < passes.size() && passes[count].stage == Pass::Stage::kClean) ++count;
        KILN_RETURN_IF_ERROR(repeat(passes.first(count)));
      } else {
        KILN_RETURN_IF_ERROR(run_one(passes.front()));
      }
      passes = passes.subspan(count);
    }
    return Ok();
  }

 private:
  Result<> repeat(std::span<const Pass> passes) {
    for (int round = 0; round < kMaxCleanRounds; ++round) {
      const int64_t before = changes_;
      for (const Pass& pass : passes) KILN_RETURN_IF_ERROR(run_one(pass));
      if (changes_ == before) break;
    }
    return Ok();
  }

  bool skips(const Pass& pass) const {
    if (pass.required) return false;
    const PassOptions& options = context_.options;
    return (options.stop_after >= 0 && changes_ >= options.stop_after) ||
           std::find(options.disabled.begin(), options.disabled.end(), pass.name) !=
               options.disabled.end();
  }

  Result<> run_one(const Pass& pass) {
    if (skips(pass)) return Ok();
    const std::string where = "pass '" + std::string(pass.name) + "'";
    const bool checks = context_.options.check_changed_flag;
    const uint64_t before = checks ? graph_.fingerprint() : 0;
    const auto start = std::chrono::steady_clock::now();
    Result<bool> changed = pass.run(graph_, context_);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (!changed.ok()) return std::move(changed).error().context(where);
    if (*changed) graph_.compact();
    if (checks && !*changed && graph_.fingerprint() != before) {
      return Error{ErrorCode::kInternal, where + ": changed the graph but reported no change"};
    }
    record(pass.name, elapsed.count(), *changed);
    if (!*changed) return Ok();
    Result<> valid = graph_.verify();
    if (!valid.ok()) return std::move(valid).error().context(where + " broke the graph");
    ++changes_;
    return dumps_ ? dump(graph_, changes_, pass.name, context_.options.label) : Ok();
  }

  void record(std::string_view pass, double seconds, bool changed) {
    auto& timings = context_.timings;
    auto row = std::find_if(timings.begin(), timings.end(),
                            [&](const PassTiming& timing) { return timing.pass == pass; });
    if (row == timings.end()) row = timings.insert(row, PassTiming{std::string(pass)});
    row->seconds += seconds;
    row->changes += changed;
  }

  ir::Graph& graph_;
  PassContext& context_;
  bool dumps_;
  int64_t changes_ = 0;
};

}  // namespace

Result<> check_pass_options(std::span<const Pass> passes, const PassOptions& options) {
  KILN_RETURN_IF_ERROR(check_disabled_names(passes, options));
  const auto dumps = dumps_graphs();
  return dumps.ok() ? Ok() : Result<>(dumps.error());
}

Result<> run_passes(ir::Graph& graph, std::span<const Pass> passes, PassContext& context) {
  KILN_RETURN_IF_ERROR(check_disabled_names(passes, context.options));
  KILN_ASSIGN_OR_RETURN(const bool dumps, dumps_graphs());
  return Driver(graph, context, dumps).run_all(passes);
}

}  // namespace kiln
