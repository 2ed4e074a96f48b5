#include "formats/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kiln {
namespace {

Error io_error(const std::filesystem::path& path, const std::string& reason) {
  return {ErrorCode::kIo, "read '" + path.string() + "': " + reason};
}

std::string reason_of(int error) {
  std::string reason = std::strerror(error);
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') reason[0] += 'a' - 'A';
  return reason;
}

}  // namespace

Result<SharedBytes> map_descriptor(int descriptor, const std::filesystem::path& path) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return io_error(path, reason_of(errno));
  if (!S_ISREG(status.st_mode)) return io_error(path, "is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return SharedBytes{};
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return io_error(path, reason_of(errno));
  std::shared_ptr<const void> owner(data, [size](void* mapped) { munmap(mapped, size); });
  return SharedBytes{std::move(owner), {static_cast<const std::byte*>(data), size}};
}

Result<SharedBytes> map_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return io_error(path, reason_of(errno));
  auto mapped = map_descriptor(descriptor, path);
  close(descriptor);
  return mapped;
}

}  // namespace kiln
