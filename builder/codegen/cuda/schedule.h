// CudaSchedule: how a loop kernel is spread over a GPU's threads. Plain data: the tuner, the timing
// cache and reports work on it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/loop_ir/loop_kernel.h"

namespace kiln::codegen {

enum class Family : uint8_t {
  kPoints,   // no reduced dims: each thread computes a few vectors of points
  kRows,     // `group` threads share one row of the reduced dims
  kColumns,  // vectors of points of the parallel dims, `group` threads share their reduced dims
  kTiles,    // no reduced dims: squares of `group` points are read along one dim, written along
             // another
  kSplit,    // few long rows: reductions in `group` parts, over several launches
};

inline constexpr size_t kFamilyCount = 5;

inline constexpr uint32_t kMaxCluster = 8;

struct CudaSchedule {
  Family family = Family::kColumns;
  uint32_t threads = 256;  // of a block
  uint32_t vector = 1;     // neighbouring elements that a thread handles at a time
  uint32_t unroll = 1;     // vectors whose loads are in flight together
  uint32_t group = 1;      // threads that share one reduction: 1 to 32, all of a block, or, where
                           // larger than that, all of a cluster of up to kMaxCluster blocks;
                           // a tile's edge; the parts of a split reduction
  bool keep = false;       // kRows: a row is read once and stays in registers
  bool stream = false;     // what is touched once passes the caches by
  friend bool operator==(const CudaSchedule&, const CudaSchedule&) = default;
};

std::string_view to_string(Family family);
// "rows threads=128 vector=8 unroll=1 group=32 keep", and back.
std::string to_text(const CudaSchedule& schedule);
std::optional<CudaSchedule> parse_cuda_schedule(std::string_view text);

// What choosing schedules needs to know of a GPU.
struct CudaLimits {
  uint32_t multiprocessors = 132;
};

// Ways to run a kernel, best guess first (one launch, no workspace): at least 1 and at most 12.
// CudaSchedule{}, which takes any kernel, is there only where nothing else is. Deterministic.
// REQUIRES: loop::verify(kernel) was ok.
std::vector<CudaSchedule> cuda_schedules(const loop::LoopKernel& kernel, const CudaLimits& limits);

}  // namespace kiln::codegen
