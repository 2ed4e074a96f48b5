#include "builder/kernels/many_rows_kernel.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "builder/kernels/constants_text.h"

namespace kiln {

std::string_view tile_copies();
std::string_view many_rows_template();

namespace {

constexpr int64_t kPartBytes = 2048, kConsumerWarps = 8;
constexpr int64_t kSpare = 2048;  // for barriers and to begin on a boundary of 1024 bytes
constexpr size_t kMostTilings = 4;

constexpr ManyRowsTiling kTilings[] = {
    {3, 128, 4, 1, 2},          {2, 128, 5, 2, 1},          {2, 128, 5, 1, 1},
    {1, 128, 8, 1, 1},          {1, 64, 10, 1, 1},          {1, 64, 9, 1, 1, 2},
    {1, 64, 9, 1, 1, 4},        {1, 128, 6, 1, 1, 2},       {1, 128, 6, 1, 1, 4},
    {1, 128, 8, 2, 1, 1, true}, {1, 128, 8, 1, 1, 1, true}, {1, 128, 6, 1, 1, 2, true},
    {1, 256, 4, 2, 1},          {1, 256, 4, 1, 1},
};

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_e4m3(const ManyRowsShape& shape) { return shape.dtype == DType::kF8E4M3FN; }
int64_t bytes_of(DType dtype) { return bits_of(dtype) / 8; }

int64_t rows_of(const ManyRowsTiling& tiling) { return 64 * tiling.blocks; }
// Results of a tile's row.
int64_t columns_of(const ManyRowsShape& shape, const ManyRowsTiling& tiling) {
  return tiling.columns / shape.halves;
}
int64_t cluster_of(const ManyRowsTiling& tiling) {
  return tiling.cluster_rows * tiling.cluster_columns * tiling.splits;
}
int64_t stage_bytes(const ManyRowsTiling& tiling) {
  return (rows_of(tiling) + tiling.columns) * 128;
}

// Columns of a part, 128 bytes of results.
int64_t part_columns(const ManyRowsShape& shape) { return 128 / bytes_of(shape.result); }

// Parts that a warp holds: a tile's, or a share of them that takes no more than a tile of 16 bits.
int64_t buffers_of(const ManyRowsShape& shape, const ManyRowsTiling& tiling) {
  const int64_t columns = tiling.blocks * columns_of(shape, tiling);
  const int64_t parts = columns / part_columns(shape);
  int64_t most = std::min<int64_t>(columns / 64, 4);
  while (parts % most != 0) --most;
  return most;
}

// What blocks get of each other's sums.
int64_t exchange_bytes(const ManyRowsTiling& tiling) {
  return tiling.splits > 1 ? rows_of(tiling) * tiling.columns * 4 : 0;
}

// Blocks, where each has one tile, or its share of one.
int64_t most_blocks(const ManyRowsShape& shape, const ManyRowsTiling& tiling) {
  return ceil_div(shape.rows, rows_of(tiling) * tiling.cluster_rows) *
         ceil_div(shape.columns, columns_of(shape, tiling) * tiling.cluster_columns) *
         cluster_of(tiling);
}

// Blocks that share the depth of a tile take no second one, and have 4 stages at the least.
// Clusters of 4 leave some multiprocessors out, as these come in groups whose sizes are no
// multiples of 4.
bool suits(const ManyRowsShape& shape, const ManyRowsTiling& tiling, uint32_t multiprocessors) {
  if (!takes(tiling, shape)) return false;
  if (tiling.splits == 1) return true;
  const int64_t room = tiling.splits == 2 ? multiprocessors : multiprocessors / 8 * 7;
  return most_blocks(shape, tiling) <= room &&
         shape.depth * bytes_of(shape.dtype) >= tiling.splits * 4 * 128;
}

// Cycles of the multiprocessor with the most tiles, by what its tensor cores and copies take.
double cycles_of(const ManyRowsShape& shape, const ManyRowsTiling& tiling,
                 uint32_t multiprocessors) {
  const int64_t rounds =
      ceil_div(most_blocks(shape, tiling), std::max<int64_t>(multiprocessors, 1));
  const auto area = static_cast<double>(rows_of(tiling) * tiling.columns);
  // Cycles for 1024 products: small tiles wait for shared memory, and where all multiprocessors are
  // busy for the second cache. Measured on an H200, as are the other figures.
  const bool busy = rounds > 1;
  const double pace = tiling.columns < 128 ? (busy ? 1.8 : 1.5)
                      : tiling.blocks == 1 ? (busy ? 1.25 : 0.85)
                                           : (busy ? 1.0 : 0.8);
  const double share = static_cast<double>(shape.depth * bytes_of(shape.dtype)) / 2 /
                       static_cast<double>(tiling.splits);
  const double exchange =
      tiling.splits > 1 ? area * 0.4 + 500 * static_cast<double>(tiling.splits) : 0;
  // The last tile's end is behind nothing.
  return static_cast<double>(rounds) * area * share / 1024 * pace + area * 0.2 + 2000 + exchange;
}

// The instruction on a block of 64 rows: its operands in the order of its text.
std::string multiply_text(DType dtype, int64_t columns) {
  const int64_t count = columns / 2;
  const bool bytes = dtype == DType::kF8E4M3FN;
  const std::string type(bytes ? "e4m3" : dtype == DType::kF16 ? "f16" : "bf16");
  std::string registers, operands;
  for (int64_t i = 0; i < count; ++i) {
    const std::string comma = i > 0 ? ", " : "";
    registers.append(comma).append("%").append(std::to_string(i));
    operands.append(comma).append("\"+f\"(d[").append(std::to_string(i)).append("])");
  }
  const auto operand = [&](int64_t i) { return "%" + std::to_string(count + i); };
  return "KILN_DEVICE void multiply(float (&d)[" + std::to_string(count) +
         "], unsigned long long a, unsigned long long b, int add) {\n"
         "  asm volatile(\"{.reg .pred p; setp.ne.b32 p, " +
         operand(2) + ", 0; wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
         (bytes ? "k32" : "k16") + ".f32." + type + "." + type + " {" + registers + "}, " +
         operand(0) + ", " + operand(1) + ", p, 1, 1" + (bytes ? "" : ", 0, 0") +
         ";}\" : " + operands + " : \"l\"(a), \"l\"(b), \"r\"(add));\n}\n";
}

}  // namespace

std::string to_string(const ManyRowsTiling& tiling) {
  const std::string tile = std::to_string(rows_of(tiling)) + "x" + std::to_string(tiling.columns) +
                           ".r" + std::to_string(tiling.ring);
  const std::string steps = tiling.in_steps ? ".steps" : "";
  if (tiling.splits > 1) return tile + ".k" + std::to_string(tiling.splits) + steps;
  return tile + ".c" + std::to_string(tiling.cluster_rows) + "x" +
         std::to_string(tiling.cluster_columns) + steps;
}

Result<> check_many_rows(const ManyRowsShape& shape, uint32_t compute_capability) {
  if (compute_capability != 90) {
    return refuse("the GPU has compute capability " + std::to_string(compute_capability / 10) +
                  "." + std::to_string(compute_capability % 10) + ", 9.0 expected");
  }
  if (shape.dtype != DType::kF16 && shape.dtype != DType::kBF16 && !is_e4m3(shape)) {
    return refuse("the operands are " + std::string(to_string(shape.dtype)) +
                  ", f16, bf16 or f8e4m3fn expected");
  }
  if (std::min({shape.rows, shape.columns, shape.depth}) < 1) return refuse("an extent is 0");
  for (const auto& [row, dtype] :
       {std::pair(shape.depth, shape.dtype), std::pair(shape.columns, shape.result)}) {
    if (row * bytes_of(dtype) % 16 == 0) continue;
    return refuse("rows of " + std::to_string(row) +
                  " elements do not begin on 16-byte boundaries");
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (shape.columns > kMost / shape.rows || shape.depth > kMost) {
    return refuse("an extent is above 2^30");
  }
  return Ok();
}

std::span<const ManyRowsTiling> all_many_rows_tilings() { return kTilings; }

bool takes(const ManyRowsTiling& tiling, const ManyRowsShape& shape) {
  // The widest are slower, and for results of 8 bits that halves of tiles of 128 are too few for.
  const bool needs_widest = shape.halves * part_columns(shape) > 128;
  if (tiling.columns > 128 && !needs_widest) return false;
  return columns_of(shape, tiling) >= std::max<int64_t>(part_columns(shape), 64) &&
         (is_e4m3(shape) || !tiling.in_steps);
}

std::vector<ManyRowsTiling> many_rows_tilings(const ManyRowsShape& shape,
                                              uint32_t multiprocessors) {
  constexpr double kHopeless = 1.3;               // times the likeliest's cycles
  std::vector<std::pair<double, size_t>> ranked;  // cycles, number
  for (size_t i = 0; i < std::size(kTilings); ++i) {
    if (!suits(shape, kTilings[i], multiprocessors)) continue;
    ranked.emplace_back(cycles_of(shape, kTilings[i], multiprocessors), i);
  }
  std::ranges::sort(ranked);
  std::vector<ManyRowsTiling> tilings;
  bool lacks_steps = is_e4m3(shape);
  for (const auto& [cycles, number] : ranked) {
    const ManyRowsTiling& tiling = kTilings[number];
    const bool likely = tilings.size() < kMostTilings && cycles <= kHopeless * ranked.front().first;
    if (!likely && !(lacks_steps && tiling.in_steps)) continue;
    tilings.push_back(tiling);
    lacks_steps &= !tiling.in_steps;
  }
  return tilings;
}

int64_t many_rows_blocks(const ManyRowsShape& shape, const ManyRowsTiling& tiling,
                         uint32_t multiprocessors) {
  if (tiling.splits > 1) return most_blocks(shape, tiling);
  const int64_t cluster = cluster_of(tiling);
  const int64_t slots = std::max<int64_t>(multiprocessors / cluster, 1) * cluster;
  return std::min(most_blocks(shape, tiling), slots);
}

uint32_t many_rows_shared_bytes(const ManyRowsShape& shape, const ManyRowsTiling& tiling) {
  return static_cast<uint32_t>(tiling.ring * stage_bytes(tiling) +
                               kConsumerWarps * buffers_of(shape, tiling) * kPartBytes +
                               exchange_bytes(tiling) + kSpare);
}

ManyRowsBoxes many_rows_boxes(const ManyRowsShape& shape, const ManyRowsTiling& tiling) {
  return {static_cast<uint32_t>(rows_of(tiling) / tiling.cluster_columns),
          static_cast<uint32_t>(tiling.columns / std::max(tiling.cluster_rows, shape.halves))};
}

std::string many_rows_text(const ManyRowsShape& shape, const ManyRowsTiling& tiling, int64_t blocks,
                           const codegen::PairFunction& finish) {
  std::ostringstream text;
  write_number(text, "kElementBytes", bytes_of(shape.dtype));
  write_number(text, "kResultBytes", bytes_of(shape.result));
  write_number(text, "kRows", shape.rows);
  write_number(text, "kColumns", shape.columns);
  write_number(text, "kDepth", shape.depth);
  write_number(text, "kTileBlocks", tiling.blocks);
  write_number(text, "kTileColumns", tiling.columns);
  write_number(text, "kRing", tiling.ring);
  write_number(text, "kHalves", shape.halves);
  write_number(text, "kBuffers", buffers_of(shape, tiling));
  write_number(text, "kClusterRows", tiling.cluster_rows);
  write_number(text, "kClusterColumns", tiling.cluster_columns);
  write_number(text, "kSplits", tiling.splits);
  write_number(text, "kGroup",
               std::max<int64_t>(2048 / (rows_of(tiling) * tiling.cluster_rows), 1));
  write_number(text, "kBlocks", blocks);
  // Together with the launch bounds' 168 for each thread, of which the consumers' sums are 192 for
  // the largest tile.
  const bool largest = tiling.blocks * tiling.columns * (tiling.in_steps ? 3 : 1) > 256;
  write_number(text, "kProducerRegisters", largest ? 24 : 40);
  write_number(text, "kConsumerRegisters", largest ? 240 : 232);
  write_flag(text, "kInSteps", tiling.in_steps);
  write_flag(text, "kConstantWeights", shape.constant_weights);
  write_flag(text, "kResidual", finish.residual.has_value());
  text << tile_copies() << multiply_text(shape.dtype, tiling.columns) << finish.text
       << many_rows_template();
  text << "\nKILN_KERNEL(kThreads, 1)";
  if (cluster_of(tiling) > 1) text << " __cluster_dims__(" << cluster_of(tiling) << ", 1, 1)";
  text << "\n";
  constexpr const char* kMap = "const __grid_constant__ TensorMap ";
  text << "kiln_many_rows(const char* x, const char* w, " << finish.parameters << ", " << kMap
       << "x_map, " << kMap << "w_map, " << kMap << "residual_map, " << kMap << "y_map) {\n"
       << "  many_rows(Operands{" << finish.arguments << "}, x_map, w_map, residual_map, y_map);\n"
       << "}\n";
  return text.str();
}

}  // namespace kiln
