// engine-run: runs an engine, compares its outputs, measures it.
#include <cstdio>
#include <exception>

#include "apps/engine-run/run_engine.h"
#include "apps/print_out.h"

namespace {

int run(const kiln::run::Options& options) {
  using namespace kiln::run;
  const auto outcome = run_engine(options);
  if (!outcome.ok()) {
    kiln::print_error("engine-run", outcome.error());
    return kFailed;
  }
  const std::string text = options.json    ? to_json(*outcome)
                           : options.quiet ? std::string()
                                           : to_text(*outcome);
  const bool printed = kiln::print_out("engine-run", text);
  if (!options.quiet) {
    for (const auto& note : outcome->notes)
      std::fprintf(stderr, "note: %s\n", kiln::printable(note).c_str());
  }
  for (const auto& warning : outcome->warnings) {
    std::fprintf(stderr, "warning: %s\n", kiln::printable(warning).c_str());
  }
  if (outcome->passed()) return printed ? kOk : kFailed;
  std::fputs("engine-run: error: the outputs differ from the reference\n", stderr);
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto parsed = kiln::run::parse_command_line(argc, argv);
  const auto* options = std::get_if<kiln::run::Options>(&parsed);
  return options == nullptr ? std::get<int>(parsed) : run(*options);
} catch (const std::exception& error) {  // out of memory, in the program itself
  std::fprintf(stderr, "engine-run: error: %s\n", error.what());
  return kiln::run::kFailed;
}
