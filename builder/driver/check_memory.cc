#include "builder/driver/check_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "formats/report/quantity_text.h"

namespace kiln {
namespace {

uint64_t bytes_of(const ir::Graph& graph, std::span<const ir::ValueId> values) {
  uint64_t bytes = 0;
  for (ir::ValueId id : values) {
    if (!graph.value(id).constant) bytes += static_cast<uint64_t>(graph.type(id).bytes());
  }
  return bytes;
}

// The number that a file of one line holds; `fallback` where there is none ("max").
uint64_t number_in(const char* path, uint64_t fallback) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : fallback;
}

}  // namespace

uint64_t least_memory_bytes(const ir::Graph& graph) {
  uint64_t least = bytes_of(graph, graph.inputs()) + 2 * bytes_of(graph, graph.outputs());
  for (ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    const uint64_t read = bytes_of(graph, node.inputs);
    if (read == 0) continue;  // of constants alone: folded, or no larger than they are
    least = std::max(least, read + bytes_of(graph, node.outputs));
  }
  return least;
}

uint64_t available_memory_bytes() {
  uint64_t bytes = UINT64_MAX;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view kName = "MemAvailable:";
    if (!line.starts_with(kName)) continue;
    bytes = 1024 * std::strtoull(line.c_str() + kName.size(), nullptr, 10);
  }
  bytes = std::min(bytes, number_in("/sys/fs/cgroup/memory.max", UINT64_MAX));
  return std::min(bytes, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", UINT64_MAX));
}

Result<> check_memory(const ir::Graph& graph, const std::string& point, uint64_t available_bytes) {
  const uint64_t least = least_memory_bytes(graph);
  if (least <= available_bytes) return Ok();
  return Error{ErrorCode::kOutOfMemory,
               "shape point '" + point + "' takes at least " + report::bytes_text(least) +
                   " of memory to build, found " + report::bytes_text(available_bytes) +
                   " available; build for fewer rows or smaller shapes"};
}

}  // namespace kiln
