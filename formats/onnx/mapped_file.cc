#include "formats/onnx/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <system_error>
#include <utility>

namespace kiln::onnx {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string system_message(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Result<Bytes> map_descriptor(const Descriptor& file) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return Error{ErrorCode::kIo, system_message(errno)};
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kIo, "not a regular file"};
  if (info.st_size == 0) return Bytes{};
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    return Error{ErrorCode::kIo, "cannot be mapped: " + system_message(errno)};
  }
  std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
  return Bytes{std::move(owner), static_cast<const std::byte*>(address), size};
}

Result<Bytes> map_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return Error{ErrorCode::kIo, "cannot open: " + system_message(errno)};
  return map_descriptor(file);
}

}  // namespace kiln::onnx
