// ConstantPool and BlobPool: contents that all shape points of an engine share, each stored once.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/shared_bytes.h"

namespace kiln {

// Constants are told apart by their bytes. Offsets are multiples of kConstantAlignment.
class ConstantPool {
 public:
  // Where the constant lies in the weights section.
  plan::BufferRef add(std::string_view name, const SharedBytes& bytes);

  std::vector<plan::Constant> constants() const { return constants_; }
  // Everything in one block, gaps zero.
  SharedBytes weights() const;
  uint64_t bytes() const { return size_; }

 private:
  std::vector<plan::Constant> constants_;
  std::vector<SharedBytes> contents_;
  std::map<std::pair<const std::byte*, size_t>, size_t> by_address_;
  std::multimap<uint64_t, size_t> by_hash_;
  uint64_t size_ = 0;
};

class BlobPool {
 public:
  uint32_t add(std::string_view bytes);
  std::vector<SharedBytes> blobs() const { return blobs_; }

 private:
  std::vector<SharedBytes> blobs_;
  std::map<std::string, uint32_t, std::less<>> numbers_;
};

inline constexpr uint64_t kConstantAlignment = 64;

}  // namespace kiln
