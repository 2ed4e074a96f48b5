#include "formats/onnx/tensor_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::onnx {

SharedBytes own_string(std::string&& text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, std::as_bytes(std::span(*owner))};
}

SharedBytes aligned(SharedBytes bytes, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return bytes;
  return SharedBytes::take({bytes.bytes.begin(), bytes.bytes.end()});
}

SharedBytes normalized_bools(SharedBytes bytes) {
  const auto above_one = [](std::byte b) { return b > std::byte{1}; };
  if (std::none_of(bytes.bytes.begin(), bytes.bytes.end(), above_one)) return bytes;
  std::vector<std::byte> copy(bytes.bytes.begin(), bytes.bytes.end());
  std::replace_if(copy.begin(), copy.end(), above_one, std::byte{1});
  return SharedBytes::take(std::move(copy));
}

}  // namespace kiln::onnx
