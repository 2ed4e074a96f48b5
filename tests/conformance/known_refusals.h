// The reviewed list of cases that Kiln refuses on purpose: `case-name: reason`, one a line.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "formats/result.h"

namespace kiln::conformance {

// By case name; a name may end in '*'.
Result<std::map<std::string, std::string>> read_known_refusals(const std::filesystem::path& file);
bool is_known(const std::map<std::string, std::string>& known, const std::string& name);

}  // namespace kiln::conformance
