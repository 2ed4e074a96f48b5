// Files mapped into memory, read-only.
#pragma once
#include <filesystem>
#include <string>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Maps the whole of an open regular file; an empty one gives empty bytes. The mapping outlives the
// descriptor. Errors: kIo, when it is no regular file or cannot be mapped.
Result<Bytes> map_descriptor(const Descriptor& file);

// Opens and maps; errors name no path, the caller adds it.
Result<Bytes> map_file(const std::filesystem::path& path);

// "no such file or directory": what errno says, in lower case.
std::string system_message(int error_number);

}  // namespace kiln::onnx
