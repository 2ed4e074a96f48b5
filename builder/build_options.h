// Options of kiln::build, as engine-build's flags give them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_type.h"

namespace kiln {

enum class BuildTarget : uint8_t { kAuto, kHost, kCuda };
// kTf32: values stay f32; matmuls and convolutions of the GPU may round their operands to TF32.
enum class Precision : uint8_t { kFp32, kTf32, kFp16, kBf16 };

constexpr std::string_view to_string(Precision precision) {
  constexpr std::string_view kNames[] = {"fp32", "tf32", "fp16", "bf16"};
  return kNames[static_cast<size_t>(precision)];
}
// Whether values are stored in fewer than 32 bits.
constexpr bool is_narrow(Precision precision) { return precision >= Precision::kFp16; }

// Extents of one input; -1 stands for the batch dimension ("B" on the command line).
using ShapeSet = std::map<std::string, Shape>;

// The values of an input that shapes depend on, dense bytes in the input's dtype; the engine is
// specialised on them and checks them at run time.
struct FixedValue {
  TensorType type;
  std::vector<std::byte> bytes;
};

struct BuildOptions {
  std::filesystem::path output;
  BuildTarget target = BuildTarget::kAuto;
  // With kCuda: the GPU is elsewhere and described in the timing cache, "sm_90" or "NVIDIA H200".
  // It was measured there; the engine is not verified here.
  std::string target_device;
  Precision precision = Precision::kFp32;
  bool io_fp16 = false;  // float inputs and outputs become f16

  int64_t max_batch = 0;                       // buckets 1, 2, 4, ... max_batch; 0: not given
  std::vector<int64_t> batches;                // explicit buckets instead
  std::map<std::string, ShapeSet> shape_sets;  // by name; "" is the unnamed one
  // By shape set, then by input.
  std::map<std::string, std::map<std::string, FixedValue>> fixed_values;

  std::filesystem::path timing_cache;  // read if it is there, written back
  std::filesystem::path report;        // JSON, or a page if it is named .html
  std::filesystem::path verify_data;   // .npz, or a folder of them, with real inputs
  bool verify = true;
  std::vector<std::filesystem::path> plugins;
  // Other files that these options were read from: none is overwritten.
  std::vector<std::filesystem::path> sources;

  std::vector<std::string> disabled_passes;   // unknown names are errors
  std::vector<std::string> disabled_tactics;  // providers, such as "cublaslt"; likewise
  int64_t stop_after = -1;                    // stop after that many pass applications; bisects
  bool explain = false;                       // near misses and refusals in the report's table
  bool check_only = false;                    // list every unsupported node, build nothing
  bool dry_run = false;                       // plan and print memory, write nothing
  bool quiet = false;
};

struct BuildProgress {
  std::string stage;        // "import", "tactics b8", ...
  double fraction = 0;      // of the whole build, 0 to 1
  double seconds_left = 0;  // < 0: unknown
};
using ProgressFn = std::function<void(const BuildProgress&)>;

}  // namespace kiln
