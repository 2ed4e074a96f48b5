// Values of inputs that shapes depend on, from a file.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "builder/build_options.h"
#include "formats/result.h"

namespace kiln {

// From an .npz whose arrays are named like the inputs.
Result<std::map<std::string, FixedValue>> read_fixed_values(const std::filesystem::path& path);

}  // namespace kiln
