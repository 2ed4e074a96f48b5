#include "formats/file/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace kiln {
namespace {

std::string last_reason() {
  std::string reason = std::strerror(errno);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') reason[0] += 'a' - 'A';
  return reason;
}

Error cannot_write(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::kIo, "write '" + path.string() + "': " + reason};
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// Where a symbolic link at `path` leads; a link to nothing stands for itself.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? path : real;
}

// A new file in the folder of the final one, with the permissions of any new file; removed unless
// it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& final_path)
      : folder_(folder_of(final_path)),
        descriptor_(open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode)) {
    if (descriptor_ >= 0) return;
    take_name([&](const char* name) {
      descriptor_ = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
      return descriptor_ >= 0;
    });
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
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

  // Syncs and renames.
  bool move_to(const std::filesystem::path& path) {
    if (fsync(descriptor_) != 0) return false;
    // A link cannot replace a file, so a file without a name gets one beside its final place.
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
    const auto link = [&](const char* name) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    };
    if (name_.empty() && !take_name(link)) return false;
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 || rename(name_.c_str(), path.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  static constexpr mode_t kMode = 0666;  // less the process's mask

  // The first free name that `make` can create. It does not hold the final one, which may be as
  // long as a name can be.
  template <class Make>
  bool take_name(Make make) {
    const std::string prefix = folder_ / (".kiln." + std::to_string(getpid()) + ".");
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::string name = prefix + std::to_string(attempt);
      if (make(name.c_str())) {
        name_ = name;
        return true;
      }
      if (errno != EEXIST) return false;
    }
    return false;
  }

  std::filesystem::path folder_;
  std::string name_;  // empty: it has none
  int descriptor_;
};

// Makes a rename durable. Some file systems cannot sync a folder: the file is there all the same.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

}  // namespace

Result<> check_can_write(const std::filesystem::path& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot_write(path, "is a directory");
    if (!S_ISREG(status.st_mode)) return cannot_write(path, "is not a regular file");
  } else if (errno != ENOENT) {
    return cannot_write(path, last_reason());
  }
  const std::filesystem::path folder = folder_of(behind_links(path));
  if (access(folder.c_str(), W_OK | X_OK) == 0) return Ok();
  return cannot_write(path, "folder '" + folder.string() + "': " + last_reason());
}

Result<> write_file_atomically(const std::filesystem::path& path,
                               std::span<const std::span<const std::byte>> pieces) {
  KILN_RETURN_IF_ERROR(check_can_write(path));
  const std::filesystem::path target = behind_links(path);
  TemporaryFile file(target);
  if (!file.is_open()) return cannot_write(path, last_reason());
  for (std::span<const std::byte> piece : pieces) {
    if (!file.write(piece)) return cannot_write(path, last_reason());
  }
  if (!file.move_to(target)) return cannot_write(path, last_reason());
  sync_folder(folder_of(target));
  return Ok();
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error) return true;
  const auto real_a = std::filesystem::weakly_canonical(a, error);
  if (error) return false;
  const auto real_b = std::filesystem::weakly_canonical(b, error);
  return !error && real_a == real_b;
}

}  // namespace kiln
