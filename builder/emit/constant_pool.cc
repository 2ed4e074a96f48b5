#include "builder/emit/constant_pool.h"

#include <xxhash.h>

#include <cstring>
#include <span>

namespace kiln {

plan::BufferRef ConstantPool::add(std::string_view name, const SharedBytes& bytes) {
  const auto ref = [&](size_t i) {
    return plan::BufferRef{plan::BufferRef::Space::kWeights, 0, constants_[i].offset,
                           constants_[i].bytes};
  };
  const auto address = std::pair(bytes.data(), bytes.size());
  if (const auto known = by_address_.find(address); known != by_address_.end()) {
    return ref(known->second);
  }
  const uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at) {
    const SharedBytes& other = contents_[at->second];
    if (other.size() == bytes.size() &&
        (bytes.size() == 0 || std::memcmp(other.data(), bytes.data(), bytes.size()) == 0)) {
      return ref(at->second);
    }
  }
  const size_t number = constants_.size();
  constants_.push_back({std::string(name), size_, bytes.size(), hash});
  contents_.push_back(bytes);  // keeps the address alive, so that by_address_ stays true
  by_address_[address] = number;
  by_hash_.emplace(hash, number);
  size_ += (bytes.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  return ref(number);
}

SharedBytes ConstantPool::weights() const {
  std::vector<std::byte> block(size_);
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (contents_[i].size() == 0) continue;
    std::memcpy(block.data() + constants_[i].offset, contents_[i].data(), contents_[i].size());
  }
  return SharedBytes::take(std::move(block));
}

uint32_t BlobPool::add(std::string_view bytes) {
  if (const auto known = numbers_.find(bytes); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(blobs_.size());
  const auto span = std::as_bytes(std::span(bytes));
  std::vector<std::byte> copy(span.begin(), span.end());
  blobs_.push_back(SharedBytes::take(std::move(copy)));
  numbers_.emplace(bytes, number);
  return number;
}

}  // namespace kiln
