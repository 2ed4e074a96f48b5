#include "formats/file/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace kiln {
namespace {

std::string last_reason() {
  std::string reason = std::strerror(errno);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') reason[0] += 'a' - 'A';
  return reason;
}

// A new file beside the final one; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path)
      : name_(final_path.string() + ".XXXXXX"), descriptor_(mkostemp(name_.data(), O_CLOEXEC)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (exists_) unlink(name_.c_str());
  }

  bool is_open() const { return descriptor_ >= 0; }

  bool write(std::span<const std::byte> bytes) {
    constexpr size_t kMost = size_t{1} << 30;  // one write() takes at most 2 GiB
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMost));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return true;
  }

  // Syncs and renames; the file gets the permissions that a newly created one would have.
  bool move_to(const std::filesystem::path& path) {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor_, 0666 & ~mask) != 0 || fsync(descriptor_) != 0) return false;
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 || rename(name_.c_str(), path.c_str()) != 0) return false;
    exists_ = false;
    return true;
  }

 private:
  std::string name_;
  int descriptor_;
  bool exists_ = descriptor_ >= 0;
};

// Makes a rename durable. Some file systems cannot sync a folder: the file is there all the same.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

}  // namespace

Result<> write_file_atomically(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces) {
  const auto failed = [&path] {
    return Error{ErrorCode::kIo, "write '" + path.string() + "': " + last_reason()};
  };
  TemporaryFile file(path);
  if (!file.is_open()) return failed();
  for (std::span<const std::byte> piece : pieces) {
    if (!file.write(piece)) return failed();
  }
  if (!file.move_to(path)) return failed();
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
  return Ok();
}

}  // namespace kiln
