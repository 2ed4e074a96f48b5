#include "builder/kernels/few_rows_kernel.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>

#include "builder/kernels/constants_text.h"
#include "builder/kernels/residency.h"

namespace kiln {

std::string_view few_rows_template();

namespace {

constexpr int64_t kMostRows = 32, kMostPlainRows = 8;
constexpr size_t kMostTilings = 12;
// Fewer rows are read quickly by every block.
constexpr int64_t kFewestToSplit = 9;
constexpr int64_t kShortestRing = 3, kLongestRing = 16;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_plain(const FewRowsShape& shape) { return shape.dtype == DType::kF32; }

bool is_e4m3(const FewRowsShape& shape) { return shape.dtype == DType::kF8E4M3FN; }

// The kernel's name for the type of x.
int64_t kind_of(const FewRowsShape& shape) {
  if (is_plain(shape)) return 0;
  if (is_e4m3(shape)) return 3;
  return shape.dtype == DType::kF16 ? 1 : 2;
}

// Elements of 16 bytes.
int64_t piece_of(const FewRowsShape& shape) {
  return is_plain(shape) ? 4 : is_e4m3(shape) ? 16 : 8;
}

int64_t tiles_of(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  return ceil_div(shape.columns * shape.parts, 8 * tiling.groups);
}

// Buffers for the sums of a tile.
int64_t turns_of(const FewRowsShape& shape) { return shape.rows > 16 ? 1 : 2; }

int64_t shared_bytes(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  const int64_t ring = tiling.ring * tiling.steps * tiling.groups * tiling.warps * 512;
  const int64_t sums = shape.rows * 8 * tiling.groups * 4;
  // Shares are rounded up, by less than an element for each block of the cluster.
  const int64_t shares = tiling.split > 1 ? 2 * (sums + tiling.split * shape.parts * 4) + 16 : 0;
  return ring + turns_of(shape) * tiling.warps * sums + shares;
}

int64_t largest_ring(const FewRowsShape& shape, FewRowsTiling tiling, int64_t room) {
  tiling.ring = kLongestRing;
  while (tiling.ring > 0 && shared_bytes(shape, tiling) > room) --tiling.ring;
  return tiling.ring;
}

int64_t stages_of(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  return ceil_div(ceil_div(shape.depth, tiling.steps * 4 * piece_of(shape)),
                  tiling.warps * tiling.split);
}

// Registers of a thread that hold x, 8 bits as 16: all that it reads, or a stage of it, and the
// next on tensor cores.
int64_t registers_of_x(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  // Tensor cores take 8 or 16 rows at a time.
  const int64_t tensor_core_pieces = shape.rows <= 8 ? 1 : ceil_div(shape.rows, 16) * 2;
  const int64_t pieces = is_plain(shape) ? shape.rows : tensor_core_pieces;
  const int64_t stages = tiling.keep ? stages_of(shape, tiling) : is_plain(shape) ? 1 : 2;
  return stages * tiling.steps * pieces * (is_e4m3(shape) ? 8 : 4);
}

// Half of its registers are enough for x.
bool has_registers(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  const int64_t registers = registers_in_half(tiling.warps * 32 * tiling.blocks);
  // 64 are too few for more than 16 rows, or 8 of 8 bits.
  if (shape.rows > (is_e4m3(shape) ? 8 : 16) && registers <= 64) return false;
  return registers_of_x(shape, tiling) <= registers / 2;
}

// Some of its warps would have nothing to do.
bool has_idle_warps(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  const int64_t warps = tiling.warps * tiling.split;
  const int64_t busy = (warps - 1) * stages_of(shape, tiling);
  return warps > 1 && busy * tiling.steps * 4 * piece_of(shape) >= shape.depth;
}

}  // namespace

std::string to_string(const FewRowsTiling& tiling) {
  return "g" + std::to_string(tiling.groups) + ".s" + std::to_string(tiling.steps) + ".w" +
         std::to_string(tiling.warps) + ".r" + std::to_string(tiling.ring) + ".b" +
         std::to_string(tiling.blocks) + (tiling.keep ? ".keep" : "") +
         (tiling.once ? ".once" : "") +
         (tiling.late >= 0 ? ".l" + std::to_string(tiling.late) : "") +
         (tiling.ahead > 0 ? ".a" + std::to_string(tiling.ahead) : "") +
         (tiling.split > 1 ? ".k" + std::to_string(tiling.split) : "");
}

Result<> check_few_rows(const FewRowsShape& shape, uint32_t compute_capability) {
  if (shape.dtype != DType::kF16 && shape.dtype != DType::kBF16 && !is_e4m3(shape) &&
      !is_plain(shape)) {
    return refuse("the operands are " + std::string(to_string(shape.dtype)) +
                  ", f16, bf16, f8e4m3fn or f32 expected");
  }
  if (is_e4m3(shape) && compute_capability < 89) {
    return refuse("the GPU's tensor cores take no f8e4m3fn");
  }
  const int64_t most = is_plain(shape) ? kMostPlainRows : kMostRows;
  if (shape.rows > most) {
    return refuse("the product has " + std::to_string(shape.rows) + " rows, up to " +
                  std::to_string(most) + " expected");
  }
  if (std::min({shape.rows, shape.columns, shape.depth}) < 1) return refuse("an extent is 0");
  if (shape.depth % piece_of(shape) != 0) {
    return refuse("rows of " + std::to_string(shape.depth) +
                  " elements do not begin on 16-byte boundaries");
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (shape.columns > kMost / shape.rows / shape.parts || shape.depth > kMost) {
    return refuse("an extent is above 2^30");
  }
  return Ok();
}

std::vector<FewRowsTiling> few_rows_tilings(const FewRowsShape& shape,
                                            uint32_t compute_capability) {
  // Copies that are under way take 35 KB of each of an H200's multiprocessors at the least: its
  // bandwidth times a microsecond. More of them get over the ends of tiles and of kernels: a ring
  // of 0 stands for the largest. As measured there in chains of kernels: one block of a
  // multiprocessor while all of x stays in registers, two where it does not; clusters from 16 rows.
  constexpr FewRowsTiling kSpread[] = {
      {2, 1, 16, 0, 1, true},
      {4, 1, 8, 0, 1, true, false, -1, 0, 2},
      {1, 2, 16, 0, 1, true},
      {1, 2, 8, 0, 1, true},
      {2, 1, 8, 3, 2, false, false, 0},
      {2, 1, 8, 0, 2, true},
      {4, 1, 8, 0, 1, true},
      {4, 1, 4, 0, 2, true, false, -1, 0, 2},
      {4, 1, 4, 0, 2, true, false, -1, 0, 4},
      {2, 1, 8, 0, 2, false, false, 0},
      {1, 2, 8, 0, 2, false, true},
      {2, 1, 16, 0, 1, true, false, 0},
      {2, 1, 16, 0, 1, true, false, -1, 0, 2},
      {1, 2, 8, 3, 2},
      {1, 2, 4, 5, 4, true},
      {1, 1, 16, 4, 1, true},
      {1, 2, 4, 10, 2},
      {2, 1, 4, 10, 2},
      {1, 1, 2, 8, 6},
      {1, 1, 1, 8, 8},
  };
  std::vector<FewRowsTiling> tilings;
  for (FewRowsTiling tiling : kSpread) {
    if (tilings.size() == kMostTilings) break;
    if (tiling.groups % shape.parts != 0) {
      tiling.groups *= 2;
      tiling.ring = ceil_div(tiling.ring, 2);
    }
    tiling.keep = tiling.keep && has_registers(shape, tiling);
    const int64_t room = shared_bytes_in_half(compute_capability, tiling.blocks);
    if (tiling.ring == 0) tiling.ring = largest_ring(shape, tiling, room);
    if (tiling.ring < kShortestRing || shared_bytes(shape, tiling) > room) continue;
    if (!has_registers(shape, tiling)) continue;
    if (is_plain(shape) && tiling.groups > 2) continue;
    if (tiling.split > 1 && shape.rows < kFewestToSplit) continue;
    if (tiling.split > 1 && compute_capability < 90) continue;
    // The last warp has nothing to do.
    if (has_idle_warps(shape, tiling)) continue;
    if (std::ranges::count(tilings, tiling) == 0) tilings.push_back(tiling);
  }
  return tilings;
}

int64_t few_rows_blocks(const FewRowsShape& shape, const FewRowsTiling& tiling,
                        uint32_t multiprocessors) {
  const int64_t tiles = tiles_of(shape, tiling);
  const int64_t slots = std::max<int64_t>(multiprocessors, 1) * tiling.blocks;
  return std::min(tiles, std::max<int64_t>(slots / tiling.split, 1)) * tiling.split;
}

std::string few_rows_text(const FewRowsShape& shape, const FewRowsTiling& tiling, int64_t blocks,
                          const codegen::RowFunction& finish) {
  std::ostringstream text;
  text << "constexpr int kPlain = 0, kF16 = 1, kBF16 = 2, kE4M3 = 3;\n";
  write_number(text, "kKind", kind_of(shape));
  write_number(text, "kRows", shape.rows);
  write_number(text, "kColumns", shape.columns);
  write_number(text, "kPartsOfRow", shape.parts);
  write_number(text, "kDepth", shape.depth);
  write_number(text, "kGroups", tiling.groups);
  write_number(text, "kSteps", tiling.steps);
  write_number(text, "kWarps", tiling.warps);
  write_number(text, "kRing", tiling.ring);
  write_number(text, "kTurns", turns_of(shape));
  write_number(text, "kBlocks", blocks);
  write_number(text, "kLate", tiling.late);
  write_number(text, "kAhead", tiling.ahead);
  write_number(text, "kSplit", tiling.split);
  write_flag(text, "kKeep", tiling.keep);
  write_flag(text, "kOnce", tiling.once);
  write_flag(text, "kConstantWeights", shape.constant_weights);
  text << finish.text << few_rows_template() << "\nKILN_KERNEL(kThreads, " << 2 * tiling.blocks
       << ")";
  if (tiling.split > 1) text << " __cluster_dims__(" << tiling.split << ", 1, 1)";
  text << "\nkiln_few_rows(const char* x, const char* w, " << finish.parameters << ") {\n"
       << "  few_rows(x, w, Operands{" << finish.arguments << "});\n}\n";
  return text.str();
}

}  // namespace kiln
