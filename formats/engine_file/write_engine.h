// Plan -> engine file.
#pragma once
#include <filesystem>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

// Checks the plan (check_plan.h) and writes it; equal plans give equal bytes. The file appears
// whole or not at all: on any failure an older file at `path` is as it was. kIo names path and
// reason; kCorruptData says what is wrong with the plan.
Result<> write_engine(const plan::Plan& plan, const std::filesystem::path& path);

// The bytes of the file, unchecked: tests write broken plans with it.
Result<std::vector<std::byte>> to_bytes(const plan::Plan& plan);

}  // namespace kiln
