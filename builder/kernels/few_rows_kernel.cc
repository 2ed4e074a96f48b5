#include "builder/kernels/few_rows_kernel.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>

namespace kiln {

std::string_view few_rows_template();

namespace {

constexpr int64_t kMostRows = 32, kMostPlainRows = 8;
constexpr int64_t kSharedBytes = 48 << 10;  // static shared memory of a block
constexpr int64_t kMostKept = 64;           // registers of a thread that hold x

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_plain(const FewRowsShape& shape) { return shape.dtype == DType::kF32; }

// Elements of 16 bytes.
int64_t piece_of(const FewRowsShape& shape) { return is_plain(shape) ? 4 : 8; }

int64_t tiles_of(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  return ceil_div(shape.columns, 8 * tiling.groups);
}

// Buffers for the sums of a tile.
int64_t turns_of(const FewRowsShape& shape) { return shape.rows > 16 ? 1 : 2; }

int64_t shared_bytes(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  const int64_t ring = tiling.ring * tiling.steps * tiling.groups * tiling.warps * 512;
  return ring + turns_of(shape) * tiling.warps * shape.rows * 8 * tiling.groups * 4;
}

int64_t stages_of(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  return ceil_div(ceil_div(shape.depth, tiling.steps * 4 * piece_of(shape)), tiling.warps);
}

// Registers of a thread for all that it reads of x.
int64_t kept_registers(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  // Tensor cores take 16 rows, the absent ones as zeros.
  const int64_t pieces = is_plain(shape) ? shape.rows : ceil_div(shape.rows, 16) * 2;
  return stages_of(shape, tiling) * tiling.steps * pieces * 4;
}

// Some of its warps would have nothing to do.
bool has_idle_warps(const FewRowsShape& shape, const FewRowsTiling& tiling) {
  const int64_t busy = (tiling.warps - 1) * stages_of(shape, tiling);
  return tiling.warps > 1 && busy * tiling.steps * 4 * piece_of(shape) >= shape.depth;
}

}  // namespace

std::string to_string(const FewRowsTiling& tiling) {
  return "g" + std::to_string(tiling.groups) + ".s" + std::to_string(tiling.steps) + ".w" +
         std::to_string(tiling.warps) + ".r" + std::to_string(tiling.ring) + ".b" +
         std::to_string(tiling.blocks) + (tiling.keep ? ".keep" : "");
}

Result<> check_few_rows(const FewRowsShape& shape) {
  if (shape.dtype != DType::kF16 && shape.dtype != DType::kBF16 && !is_plain(shape)) {
    return refuse("the operands are " + std::string(to_string(shape.dtype)) +
                  ", f16, bf16 or f32 expected");
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
  if (shape.columns > kMost / shape.rows || shape.depth > kMost) {
    return refuse("an extent is above 2^30");
  }
  return Ok();
}

std::vector<FewRowsTiling> few_rows_tilings(const FewRowsShape& shape) {
  constexpr FewRowsTiling kSpread[] = {
      {1, 2, 8, 5, 2, false},  {1, 1, 16, 4, 1, true}, {1, 2, 8, 5, 2, true},
      {1, 2, 4, 5, 4, true},   {2, 1, 8, 4, 2, false}, {4, 1, 4, 4, 3, false},
      {1, 2, 8, 4, 3, false},  {2, 1, 4, 5, 4, false}, {1, 2, 4, 5, 4, false},
      {1, 1, 16, 4, 2, false}, {1, 1, 2, 8, 6, false}, {1, 1, 1, 8, 8, false}};
  std::vector<FewRowsTiling> tilings;
  for (const FewRowsTiling& tiling : kSpread) {
    if (tilings.size() == 8 || shared_bytes(shape, tiling) > kSharedBytes) continue;
    if (is_plain(shape) && tiling.groups > 2) continue;
    if (tiling.keep && kept_registers(shape, tiling) > kMostKept) continue;
    // 64 registers a thread are too few for more than 16 rows.
    if (shape.rows > 16 && tiling.warps * tiling.blocks >= 32) continue;
    // The last one has no warp to spare.
    if (has_idle_warps(shape, tiling)) continue;
    tilings.push_back(tiling);
  }
  return tilings;
}

int64_t few_rows_blocks(const FewRowsShape& shape, const FewRowsTiling& tiling,
                        uint32_t multiprocessors) {
  const int64_t tiles = tiles_of(shape, tiling);
  const int64_t slots = std::max<int64_t>(multiprocessors, 1) * tiling.blocks;
  return ceil_div(tiles, ceil_div(tiles, slots));
}

std::string few_rows_text(const FewRowsShape& shape, const FewRowsTiling& tiling, int64_t blocks,
                          const codegen::PointFunction& finish) {
  std::ostringstream text;
  const auto number = [&](const char* name, int64_t value) {
    text << "constexpr int " << name << " = " << value << ";\n";
  };
  text << "constexpr int kPlain = 0, kF16 = 1, kBF16 = 2;\n";
  number("kKind", is_plain(shape) ? 0 : shape.dtype == DType::kF16 ? 1 : 2);
  number("kRows", shape.rows);
  number("kColumns", shape.columns);
  number("kDepth", shape.depth);
  number("kGroups", tiling.groups);
  number("kSteps", tiling.steps);
  number("kWarps", tiling.warps);
  number("kRing", tiling.ring);
  number("kTurns", turns_of(shape));
  number("kBlocks", blocks);
  text << "constexpr bool kKeep = " << (tiling.keep ? "true" : "false") << ";\n"
       << "constexpr bool kConstantWeights = " << (shape.constant_weights ? "true" : "false")
       << ";\n"
       << finish.text << few_rows_template() << "\nKILN_KERNEL(kThreads, " << tiling.blocks << ")\n"
       << "kiln_few_rows(const char* x, const char* w, " << finish.parameters << ") {\n"
       << "  few_rows(x, w, Operands{" << finish.arguments << "});\n}\n";
  return text.str();
}

}  // namespace kiln
