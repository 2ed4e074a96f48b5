// Parsing a command line such that a mistyped flag is named before what it leaves missing.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Single-character edits that make `b` of `a` (Levenshtein, by rows).
inline size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The flag that is meant by one that there is none of; "" if none is near.
inline std::string nearest_flag(const CLI::App& app, const std::string& unknown) {
  const std::string given = unknown.substr(0, unknown.find('='));
  std::string nearest;
  size_t least = given.size() / 3 + 1;  // edits that are too many
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::string flag = "--" + name;
      const size_t edits = flag.starts_with(given) ? 0 : edits_between(given, flag);
      if (edits >= least) continue;
      least = edits;
      nearest = flag;
    }
  }
  return nearest;
}

// The exit code to end with, or nothing when all is well. `usage` is that of a bad command line.
inline std::optional<int> parse_flags(CLI::App& app, int argc, const char* const* argv, int usage) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const auto unknown = app.remaining();
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    if (asked || unknown.empty()) return app.exit(error) == 0 ? 0 : usage;
    const std::string meant = nearest_flag(app, unknown[0]);
    std::fprintf(stderr, "%s: found '%s', which belongs to no option%s\nRun with --help for all.\n",
                 app.get_name().c_str(), unknown[0].c_str(),
                 meant.empty() ? "" : ("; did you mean " + meant + "?").c_str());
    return usage;
  }
}

}  // namespace kiln
