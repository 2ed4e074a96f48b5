// TacticProvider: offers ways to run a region. Providers are values in an explicit list, best
// first; the plain one is last and always able. They keep no state.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builder/device/device.h"
#include "builder/ir/graph.h"
#include "builder/tactics/accuracy.h"
#include "builder/tactics/lowered.h"
#include "engine/plugin_library.h"

namespace kiln {

struct CudaTools;  // builder/cuda/build_tools.h

struct TacticQuery {
  const ir::Region& region;
  std::vector<TensorType> inputs, outputs;
  std::vector<std::optional<SharedBytes>> constants;  // by input; those whose bytes are known
  const DeviceInfo& device;
  std::span<const Plugin> plugins;
  const CudaTools* cuda = nullptr;  // null on the host target
};

// One way to run a region. Within a provider the key says it all: lower() needs nothing else.
struct Tactic {
  std::string key;  // "fused", "split", ...; part of the timing cache's key
};

// Which of a provider's candidates are tried once an earlier one is right.
enum class Trial : uint8_t {
  kAlways,
  kIfSmall,  // those of regions of little work
  kNever,
};

struct TacticProvider {
  std::string_view name;
  uint32_t version = 1;  // part of the timing cache's key; raise it when results may change
  Trial trial = Trial::kAlways;
  // Empty if it cannot run the region; then `refusal` says why in one line, for --explain.
  std::vector<Tactic> (*candidates)(const TacticQuery& query, std::string& refusal);
  Result<Lowered> (*lower)(const TacticQuery& query, const Tactic& tactic);
};

// The host target's providers, in order of preference where the clock does not decide.
std::span<const TacticProvider> host_providers();

}  // namespace kiln
