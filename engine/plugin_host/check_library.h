// The plugin ABI's rules, for a library's tables.
#pragma once
#include "formats/result.h"
#include "plugins/plugin_abi.h"

namespace kiln {

// Sizes, versions, names and functions that must be there. kVersionMismatch: made for another ABI.
// kCorruptData: breaks a rule, with the plugin's name.
Result<> check_library(const kiln_plugin_library& library);

}  // namespace kiln
