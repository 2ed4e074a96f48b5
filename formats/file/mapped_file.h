// Reading a file by mapping it.
#pragma once
#include <filesystem>

#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln {

// The whole file, mapped read-only; unmapped when the last copy goes. kIo names the path and the
// reason; only regular files are taken. A file that another process shrinks while it is mapped
// ends this one with SIGBUS, so writers must replace files instead of changing them
// (atomic_file.h).
Result<SharedBytes> map_file(const std::filesystem::path& path);
// The same for a file that is open already, and stays so; `path` names it in messages.
Result<SharedBytes> map_descriptor(int descriptor, const std::filesystem::path& path);

}  // namespace kiln
