// The command line of engine-inspect.
#pragma once
#include <filesystem>
#include <string>
#include <variant>

namespace kiln::inspect {

// Exit codes.
inline constexpr int kOk = 0, kFailed = 1, kUsage = 2;

struct Options {
  std::filesystem::path engine;
  std::filesystem::path other;  // to compare with, "": none
  std::filesystem::path html;   // the page to write, "": print text
  std::string point;            // "": all
  bool steps = false, memory = false, constants = false, report = false;
  bool explain = false, json = false;
};

// The options, or the exit code after help or a complaint was printed.
std::variant<Options, int> parse_command_line(int argc, const char* const* argv);

}  // namespace kiln::inspect
