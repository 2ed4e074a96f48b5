// Engine file -> plan. Any byte string gives a plan that check_plan accepts or a clear error.
#pragma once
#include <filesystem>
#include <string_view>

#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

struct ReadOptions {
  bool check_weights = true;  // their checksum costs a read of the whole file
};

// Maps the file; the plan's weights and blobs are views of it and keep it mapped.
// kIo: cannot be read. kCorruptData: not an engine, or damaged. kVersionMismatch: of a newer
// format.
Result<plan::Plan> read_engine(const std::filesystem::path& path, const ReadOptions& options = {});

// The same from memory; `name` stands for the file in messages. Weights are aligned as the bytes
// are.
Result<plan::Plan> parse_engine(const SharedBytes& file, std::string_view name,
                                const ReadOptions& options = {});

}  // namespace kiln
