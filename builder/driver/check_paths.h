// Whether a build's files can be written, before the work that goes into them.
#pragma once
#include <span>

#include "builder/build_options.h"
#include "formats/result.h"

namespace kiln {

// kInvalidArgument: two of the build's files are one, so that writing one would destroy the other.
// kIo: the engine, the report or a new timing cache cannot be written. An unwritable timing cache
// that is there is no error: it may be a shared one.
Result<> check_paths(const std::filesystem::path& model, const BuildOptions& options);

// The first of these errors, for what is known once the model is read: the files of its weights.
Result<> check_external_data(std::span<const std::filesystem::path> files,
                             const BuildOptions& options);

}  // namespace kiln
