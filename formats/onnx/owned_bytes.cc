#include "formats/onnx/owned_bytes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace kiln::onnx {

OwnedBytes allocate_bytes(size_t size) {
  if (size == 0) return {};
  // new[] aligns to 16 bytes, more than any element asks.
  std::shared_ptr<std::byte[]> owner(new std::byte[size]());
  std::byte* data = owner.get();
  return {Bytes{std::move(owner), data, size}, data};
}

Bytes own_string(std::string&& text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, reinterpret_cast<const std::byte*>(owner->data()), owner->size()};
}

Bytes aligned(Bytes bytes, size_t alignment) {
  if (bytes.size == 0 || reinterpret_cast<uintptr_t>(bytes.data) % alignment == 0) return bytes;
  OwnedBytes copy = allocate_bytes(bytes.size);
  std::memcpy(copy.data, bytes.data, bytes.size);
  return copy.bytes;
}

Bytes normalized_bools(Bytes bytes) {
  const std::byte* end = bytes.data + bytes.size;
  const auto above_one = [](std::byte b) { return b > std::byte{1}; };
  if (std::none_of(bytes.data, end, above_one)) return bytes;
  OwnedBytes copy = allocate_bytes(bytes.size);
  std::transform(bytes.data, end, copy.data,
                 [](std::byte b) { return b == std::byte{0} ? b : std::byte{1}; });
  return copy.bytes;
}

}  // namespace kiln::onnx
