#include "builder/precision/quality_record.h"

#include <charconv>

#include "builder/device/device_answers.h"

namespace kiln::precision {
namespace {

// Raised when measuring may come to another result.
constexpr const char* kKind = "precision@1";
// Strings before the regions, and of each region.
constexpr size_t kHead = 2, kRegion = 3;

std::string text_of(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

bool read_double(const std::string& text, double& value) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::string quality_question(const ir::Graph& graph, DType narrow, DType io,
                             std::span<const std::vector<HostTensor>> inputs) {
  std::string text = std::string(to_string(narrow)) + " " + std::string(to_string(io)) + " " +
                     std::to_string(graph.fingerprint());
  for (ir::NodeId id : graph.topological_order()) text += "\n" + graph.node(id).name;
  for (const auto& tensors : inputs) {
    for (const HostTensor& tensor : tensors) {
      const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                                   tensor.bytes.size());
      text += "\n" + hashed_question(to_string(tensor.type), bytes);
    }
  }
  return hashed_question(kKind, text);
}

std::vector<std::string> to_values(const HeldQuality& held) {
  std::vector<std::string> values = {text_of(held.damage), held.note};
  for (const auto& [name, quality] : held.regions) {
    values.insert(values.end(), {name, quality.keep, text_of(quality.damage)});
  }
  return values;
}

std::optional<HeldQuality> held_quality_of(std::span<const std::string> values) {
  HeldQuality held;
  if (values.size() < kHead || (values.size() - kHead) % kRegion != 0) return std::nullopt;
  if (!read_double(values[0], held.damage)) return std::nullopt;
  held.note = values[1];
  for (size_t i = kHead; i < values.size(); i += kRegion) {
    RegionQuality& quality = held.regions[values[i]];
    quality.keep = values[i + 1];
    if (!read_double(values[i + 2], quality.damage)) return std::nullopt;
  }
  return held;
}

}  // namespace kiln::precision
