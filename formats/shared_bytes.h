// SharedBytes: immutable bytes with shared ownership: a heap block, a piece of a mapped file, or a
// piece of a decoded message. Copies are cheap and thread-safe.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace kiln {

struct SharedBytes {
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
  std::span<const std::byte> bytes;

  const std::byte* data() const { return bytes.data(); }
  size_t size() const { return bytes.size(); }

  static SharedBytes take(std::vector<std::byte> data) {
    auto owned = std::make_shared<const std::vector<std::byte>>(std::move(data));
    return {owned, std::span<const std::byte>(*owned)};
  }
};

}  // namespace kiln
