// Lowered: what one region does in an engine, in terms of its own buffers. Emit turns it into plan
// steps once buffers have their places.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "builder/verify/reference.h"
#include "formats/engine_file/plan.h"
#include "formats/operation/operation.h"

namespace kiln {

struct LocalBuffer {
  enum class Kind : uint8_t { kNone, kInput, kOutput, kTemporary, kConstant };
  Kind kind = Kind::kNone;
  uint32_t index = 0;
  friend bool operator==(const LocalBuffer&, const LocalBuffer&) = default;
};

// A call of one of kiln_host's kernels.
struct HostCall {
  Operation operation;
  std::vector<LocalBuffer> inputs, outputs;
  uint64_t workspace_bytes = 0;
};

// A plugin that runs host code.
struct HostPluginCall {
  std::string name, version, attributes;
  std::vector<LocalBuffer> inputs, outputs;
  uint64_t workspace_bytes = 0;
};

// A launch of a generated kernel. Its parameters: inputs, outputs, workspace if there is one,
// tensor maps.
struct LocalLaunch {
  SharedBytes cubin;
  std::string entry;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t shared_bytes = 0;
  bool programmatic = false;
  std::vector<LocalBuffer> inputs, outputs;
  uint64_t workspace_bytes = 0;
  std::vector<plan::TensorMap> tensor_maps = {};
};

// A call of cuBLASLt or cuDNN; the operation is what the engine's step of that kind decodes.
struct LibraryCall {
  enum class Library : uint8_t { kCublasLt, kCudnn };
  Library library = Library::kCublasLt;
  Operation operation;
  std::vector<LocalBuffer> inputs, outputs;
  uint64_t workspace_bytes = 0;
  bool tf32 = false;  // rounds f32 operands to TF32
};

struct LocalCopy {
  LocalBuffer from, to;
};

// Control flow as in plan.h: the next steps belong to it, nested ones counted.
struct LocalBranch {
  LocalBuffer condition;
  uint32_t then_steps = 0, else_steps = 0;
};
struct LocalRepeat {
  LocalBuffer trip_count, condition, iteration;
  uint32_t body_steps = 0;
};

using LocalStep = std::variant<HostCall, HostPluginCall, LocalCopy, LocalBranch, LocalRepeat,
                               LocalLaunch, LibraryCall>;

uint64_t workspace_bytes(const LocalStep& step);  // 0 for steps without one

struct Lowered {
  std::vector<LocalStep> steps;
  std::vector<TensorType> temporaries;  // alive while the region runs
  std::vector<HostTensor> constants;    // made by the lowering, not among the region's inputs
  // On target cuda: steps without code for the GPU run on the host, between two graphs. Otherwise
  // such a step is an error.
  bool may_use_host = false;
  // Inputs whose buffer output 0 may take over: the last step alone reads them, element by element,
  // and makes output 0.
  // finish_lowering() fills this.
  std::vector<uint32_t> in_place_inputs;
};

// Whether a step of it rounds f32 operands to TF32.
bool uses_tf32(const Lowered& lowered);

// Steps run one after the other, so they share one workspace.
uint64_t largest_workspace(const Lowered& lowered);

}  // namespace kiln
