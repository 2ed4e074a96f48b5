#include "tests/conformance/known_refusals.h"

#include <fstream>

namespace kiln::conformance {

Result<std::map<std::string, std::string>> read_known_refusals(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Error{ErrorCode::kIo, "cannot read '" + file.string() + "'"};
  std::map<std::string, std::string> known;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      return Error{ErrorCode::kCorruptData,
                   "'" + file.string() + "' has the line '" + line + "', expected 'case: reason'"};
    }
    known[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return known;
}

bool is_known(const std::map<std::string, std::string>& known, const std::string& name) {
  for (const auto& [pattern, reason] : known) {
    const bool prefix = pattern.back() == '*';
    if (prefix ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern) {
      return true;
    }
  }
  return false;
}

}  // namespace kiln::conformance
