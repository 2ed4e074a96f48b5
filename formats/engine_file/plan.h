// Plan: all that an engine file says, as plain data. write_engine.h and read_engine.h turn it into
// bytes and back; the builder makes it, the engine runs it. FORMAT.md has the bytes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "formats/shared_bytes.h"
#include "formats/tensor_type.h"

namespace kiln::plan {

// Where a step finds a buffer. Offsets and lengths are bytes.
struct BufferRef {
  enum class Space : uint8_t {
    kNone,     // absent
    kArena,    // the context's activations and workspaces
    kWeights,  // the engine's constants, read only
    kInput,    // the caller's input tensor number `index`
    kOutput,   // the caller's output tensor number `index`
    kCache,    // state that outlives a call (decoders)
  };
  Space space = Space::kNone;
  uint32_t index = 0;
  uint64_t offset = 0, bytes = 0;
  friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

struct Operand {
  BufferRef buffer;
  TensorType type;  // dense, row-major
  friend bool operator==(const Operand&, const Operand&) = default;
};

// One call of a kernel of kiln_host. `operation` is the number of a blob: an encoded Operation.
struct HostOperation {
  uint32_t operation = 0;
  std::vector<Operand> inputs, outputs;
  BufferRef workspace;
  friend bool operator==(const HostOperation&, const HostOperation&) = default;
};

// A plugin that executes host code (kernel plugins became kernel launches at build time).
struct PluginCall {
  uint32_t plugin = 0;      // number in Plan::plugins
  uint32_t attributes = 0;  // number of a blob
  std::vector<Operand> inputs, outputs;
  BufferRef workspace;
  friend bool operator==(const PluginCall&, const PluginCall&) = default;
};

struct Copy {
  BufferRef from, to;  // equal lengths, no overlap
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Structured control flow: the next `then_steps` (`body_steps`) steps of the list belong to it.
// Nested steps count, so a span is skipped by adding its length.
struct Branch {
  BufferRef condition;  // one bool
  uint32_t then_steps = 0, else_steps = 0;
  friend bool operator==(const Branch&, const Branch&) = default;
};
// Runs its body while *condition is true and fewer than *trip_count rounds have run (each counts
// as absent when kNone). `iteration` receives the round's number (i64) before each round.
struct Repeat {
  BufferRef trip_count, condition, iteration;
  uint32_t body_steps = 0;
  friend bool operator==(const Repeat&, const Repeat&) = default;
};

// How a kernel's bulk copies see an operand: as rows of `columns` elements, one after the other. A
// copy moves a box of 128 bytes of each of `box_rows` rows, zeros where the box is outside, into
// rows of 128 bytes of shared memory, whose 16-byte pieces are swapped as
// CU_TENSOR_MAP_SWIZZLE_128B says; or back.
struct TensorMap {
  uint32_t operand = 0;  // number among the inputs, then the outputs
  uint32_t columns = 0;
  uint32_t box_rows = 0;
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// One launch of a kernel of ours on the device. Its parameters are the addresses of the inputs, the
// outputs and the workspace (where there is one), and the tensor maps, in this order.
struct KernelLaunch {
  uint32_t module = 0;  // number of a blob: a cubin
  std::string entry;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic shared memory
  // The kernel waits for the steps before it by itself, so it may be launched before they end.
  bool programmatic = false;
  std::vector<Operand> inputs, outputs;
  BufferRef workspace;
  std::vector<TensorMap> tensor_maps;
  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

// A cuBLASLt matmul. `operation` is the number of a blob: an encoded Operation that holds problem,
// epilogue and algorithm (engine/cuda/steps/matmul.h).
struct Matmul {
  uint32_t operation = 0;
  std::vector<Operand> inputs, outputs;
  BufferRef workspace;
  friend bool operator==(const Matmul&, const Matmul&) = default;
};

// The execution of a cuDNN plan. `operation` is the number of a blob: an encoded Operation that
// holds the plan and the ids of its tensors (engine/cuda/steps/cudnn_graph.h).
struct CudnnGraph {
  uint32_t operation = 0;
  std::vector<Operand> inputs, outputs;
  BufferRef workspace;
  friend bool operator==(const CudnnGraph&, const CudnnGraph&) = default;
};

using StepAction =
    std::variant<HostOperation, PluginCall, Copy, Branch, Repeat, KernelLaunch, Matmul, CudnnGraph>;

template <class Action>
inline constexpr bool kRunsOnDevice =
    std::is_same_v<Action, KernelLaunch> || std::is_same_v<Action, Matmul> ||
    std::is_same_v<Action, CudnnGraph>;

struct Step {
  uint32_t region = 0;  // number in ShapePoint::region_names, for messages and profiles
  StepAction action;
  friend bool operator==(const Step&, const Step&) = default;
};

// A tensor that callers see. The type is per shape point.
struct IoTensor {
  std::string name;
  int32_t batch_axis = -1;  // the axis that grows with the batch; -1: none
  friend bool operator==(const IoTensor&, const IoTensor&) = default;
};

// An input whose value the builder has specialised on (a reshape's target that comes as an input).
// A request takes this point only if its bytes equal `value`.
struct FixedInput {
  uint32_t input = 0;
  std::vector<std::byte> value;
  friend bool operator==(const FixedInput&, const FixedInput&) = default;
};

struct ShapePoint {
  std::string name;                         // "b8", "b8/long"
  int64_t batch = 0;                        // rows of the batch dimension; 0: the model has none
  std::vector<TensorType> inputs, outputs;  // as Plan::inputs, Plan::outputs
  std::vector<FixedInput> fixed_inputs;
  uint64_t arena_bytes = 0;
  uint64_t arena_lower_bound_bytes = 0;
  std::vector<std::string> region_names;  // ONNX origins of each region
  std::vector<Step> steps;
  friend bool operator==(const ShapePoint&, const ShapePoint&) = default;
};

struct Constant {
  std::string name;     // for messages and engine-inspect
  uint64_t offset = 0;  // within the weights section
  uint64_t bytes = 0;
  uint64_t hash = 0;  // xxh3-64 of its bytes
  friend bool operator==(const Constant&, const Constant&) = default;
};

struct PluginReference {
  std::string name, version;
  friend bool operator==(const PluginReference&, const PluginReference&) = default;
};

enum class Target : uint8_t { kHost = 0, kCuda = 1 };

// What the engine was made for. On the host target the device fields are empty or zero.
struct Origin {
  std::string kiln_version;
  Target target = Target::kHost;
  std::string device;               // "NVIDIA H200"; the CPU's name on the host
  uint32_t compute_capability = 0;  // 90
  uint32_t driver_version = 0, cuda_version = 0, cublaslt_version = 0, cudnn_version = 0;
  std::string precision;    // as requested: "fp32", "fp16", ...
  bool verified = false;    // every bucket was compared with the reference
  std::string model_name;   // file name of the source, without its folder
  uint64_t model_hash = 0;  // formats/onnx/content_hash.h; 0: unknown
  uint32_t rank = 0, world_size = 1;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Plan {
  Origin origin;
  std::vector<IoTensor> inputs, outputs;
  // Requests between two buckets may be padded along the batch axes: rows are independent.
  bool batch_padding = false;
  std::string batch_padding_reason;  // why not, when false
  std::vector<ShapePoint> points;    // sorted by batch within each shape set
  std::vector<Constant> constants;   // sorted by offset
  std::vector<SharedBytes> blobs;
  std::vector<PluginReference> plugins;
  std::string report_json;  // the build's report, as formats/report writes it
  // The weights section: in the builder assembled from constants, in the engine a mapped file.
  SharedBytes weights;
};

}  // namespace kiln::plan
