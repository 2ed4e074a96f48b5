// An engine file in words: everything but steps, memory and report.
#pragma once
#include <filesystem>
#include <string>

#include "formats/engine_file/plan.h"

namespace kiln::inspect {

std::string header_text(const std::filesystem::path& file, const plan::Plan& plan);
std::string tensors_text(const plan::Plan& plan);
// The shape points, all or the one of that name.
std::string points_text(const plan::Plan& plan, const std::string& only);
// The largest constants; 0: all.
std::string constants_text(const plan::Plan& plan, size_t most);

}  // namespace kiln::inspect
