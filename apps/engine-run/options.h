// The command line of engine-run.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/engine-run/benchmark.h"
#include "apps/engine-run/compare.h"
#include "apps/engine-run/random_inputs.h"

namespace kiln::run {

// Exit codes.
inline constexpr int kOk = 0, kFailed = 1, kUsage = 2;

struct NamedFile {
  std::string name;  // of the input
  std::filesystem::path file;
};

struct Options {
  std::filesystem::path engine;
  std::vector<std::filesystem::path> input_files;
  std::vector<NamedFile> named_inputs;
  RandomOptions random;
  std::filesystem::path outputs, reference;  // "": not asked for
  Tolerance tolerance;
  bool benchmark = false;
  BenchmarkOptions timing;
  int contexts = 1;
  std::vector<std::filesystem::path> plugins;
  bool allow_unverified = false, json = false, quiet = false;

  bool random_inputs() const { return input_files.empty() && named_inputs.empty(); }
};

// The options, or the exit code after help or a complaint was printed.
std::variant<Options, int> parse_command_line(int argc, const char* const* argv);

}  // namespace kiln::run
