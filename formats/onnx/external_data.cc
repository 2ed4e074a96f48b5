#include "formats/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "formats/file/mapped_file.h"

namespace kiln::onnx {
namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string reason_of(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] += 'a' - 'A';
  return text;
}

Error refuse(std::string why) { return {ErrorCode::kCorruptData, std::move(why)}; }

Result<> check_location(const std::string& location) {
  if (location.empty()) return refuse("external data has no location, expected a file name");
  if (location.find('\0') != std::string::npos) {
    return refuse("external location holds a zero byte, expected a file name");
  }
  const std::filesystem::path path(location);
  if (path.is_absolute()) {
    return refuse("external location '" + location +
                  "' is absolute, expected a path inside of the model's folder");
  }
  for (const auto& part : path) {
    if (part == "..") {
      return refuse("external location '" + location +
                    "' leaves the model's folder by '..', expected a path inside of it");
    }
  }
  return Ok();
}

// Opens one path component below `parent`; following no link keeps every step inside.
Result<Descriptor> open_below(const Descriptor& parent, const std::string& name, int flags,
                              const std::string& location) {
  Descriptor file(
      ::openat(parent.get(), name.c_str(), flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.valid()) return file;
  const int error_number = errno;
  struct stat info = {};
  const bool link = ::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(info.st_mode);
  if (link) {
    return refuse("external location '" + location +
                  "' is or passes through a symbolic link, expected a regular file in the "
                  "model's folder; copy the file there");
  }
  return Error{ErrorCode::kIo,
               "external file '" + location + "' cannot be opened: " + reason_of(error_number)};
}

Result<Descriptor> open_inside(const std::filesystem::path& folder, const std::string& location) {
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!at.valid()) {
    return Error{ErrorCode::kIo, "the model's folder '" + folder.string() +
                                     "' cannot be opened: " + reason_of(errno)};
  }
  const std::filesystem::path path = std::filesystem::path(location).lexically_normal();
  for (auto part = path.begin(); part != path.end(); ++part) {
    const int flags = std::next(part) == path.end() ? 0 : O_DIRECTORY;
    KILN_ASSIGN_OR_RETURN(at, open_below(at, part->string(), flags, location));
  }
  struct stat info = {};
  if (::fstat(at.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1) {
    return refuse("external file '" + location + "' has " + std::to_string(info.st_nlink) +
                  " hard links, expected one, as the others may lie outside of the model's "
                  "folder; copy the file");
  }
  return at;
}

}  // namespace

Result<SharedBytes> ExternalData::map(const std::string& location) {
  const auto known = by_location_.find(location);
  if (known != by_location_.end()) return files_[known->second];
  KILN_RETURN_IF_ERROR(check_location(location));
  if (folder_.empty()) {
    return refuse("external data '" + location + "' is not allowed in a model without a folder");
  }
  KILN_ASSIGN_OR_RETURN(const Descriptor file, open_inside(folder_, location));
  KILN_ASSIGN_OR_RETURN(auto bytes, map_descriptor(file.get(), location));
  by_location_.emplace(location, files_.size());
  paths_.push_back(folder_ / location);
  return files_.emplace_back(std::move(bytes));
}

Result<SharedBytes> ExternalData::read(const ExternalRange& range, uint64_t expected_bytes) {
  if (range.length && *range.length != expected_bytes) {
    return refuse("external data has length " + std::to_string(*range.length) +
                  ", its type needs " + std::to_string(expected_bytes) + " bytes");
  }
  KILN_ASSIGN_OR_RETURN(const SharedBytes file, map(range.location));
  if (range.offset > file.size() || expected_bytes > file.size() - range.offset) {
    return refuse("external data is " + std::to_string(expected_bytes) + " bytes at offset " +
                  std::to_string(range.offset) + " of '" + range.location + "', which has " +
                  std::to_string(file.size()) + " bytes");
  }
  return SharedBytes{file.owner, file.bytes.subspan(range.offset, expected_bytes)};
}

}  // namespace kiln::onnx
