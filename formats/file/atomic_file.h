// Writing a file so that a reader sees the old one or the new one, whole.
#pragma once
#include <filesystem>
#include <span>

#include "formats/result.h"

namespace kiln {

// Writes the pieces, in order, to a temporary file in the same folder, syncs it, renames it to
// `path` and syncs the folder. On any failure the temporary file is removed, an older file at
// `path` is as it was, and kIo names the path and the reason ("no space left on device").
Result<> write_file_atomically(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces);

}  // namespace kiln
