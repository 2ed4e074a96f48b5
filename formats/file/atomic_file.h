// Writing a file so that a reader sees the old one or the new one, whole.
#pragma once
#include <filesystem>
#include <span>

#include "formats/result.h"

namespace kiln {

// Writes the pieces, in order, to a temporary file in the same folder, syncs it, renames it to
// `path` and syncs the folder. On any failure an older file at `path` is as it was, and kIo names
// the path and the reason ("no space left on device"). Where the file system has unnamed files,
// the temporary one has a name only for the moment of the rename: a process that is killed leaves
// nothing. A symbolic link at `path` stays, the file it leads to is replaced.
Result<> write_file_atomically(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces);

// kIo where write_file_atomically would fail whatever the content: no folder, no right to write to
// it, or something at `path` that is no regular file. To find out before long work.
Result<> check_can_write(const std::filesystem::path& path);

// Whether both names lead to one file, whether or not it exists yet.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace kiln
