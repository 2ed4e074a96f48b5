// External tensor data: byte ranges of files that must lie in the model's own folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::onnx {

// Where a tensor says its bytes are.
struct ExternalRange {
  std::string location;  // relative to the model's folder
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // absent: as many bytes as the tensor's type needs
};

// Maps each file once. Not thread-safe.
class ExternalData {
 public:
  // An empty folder refuses all external data.
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The range's bytes, which must be exactly `expected_bytes` many. A location that is absolute,
  // has "..", or passes through a symbolic or hard link is refused: a model must not read what
  // lies outside of its folder.
  Result<SharedBytes> read(const ExternalRange& range, uint64_t expected_bytes);
  // The files that were read from, whole, in order of first use.
  const std::vector<SharedBytes>& files() const { return files_; }
  const std::vector<std::filesystem::path>& paths() const { return paths_; }  // theirs

 private:
  Result<SharedBytes> map(const std::string& location);

  std::filesystem::path folder_;
  std::vector<SharedBytes> files_;
  std::vector<std::filesystem::path> paths_;
  std::unordered_map<std::string, size_t> by_location_;  // number in files_
};

}  // namespace kiln::onnx
