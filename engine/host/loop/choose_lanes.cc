#include <algorithm>

#include "engine/host/loop/program_parts.h"

namespace kiln::host {
namespace {

using loop::DimSet;
using loop::Expr;
using Kind = loop::Expr::Kind;

constexpr int64_t kBlock = 1024;
constexpr int64_t kLongestRow = 4096;
// Shorter rows than this are not worth the overhead of one each.
constexpr int64_t kShortRow = 32;

bool has(DimSet set, uint32_t dim) { return (set >> dim & 1) != 0; }

int64_t stride_along(const loop::IndexMap& map, uint32_t dim) {
  int64_t stride = 0;
  for (const loop::MapTerm& term : map.terms) {
    if (term.dim == dim && term.divisor == 1) stride += term.stride;
  }
  return stride < 0 ? -stride : stride;
}

// Dims with the largest stride first: by the first store that moves along them, else load.
std::vector<uint32_t> ordered(const loop::LoopKernel& kernel, DimSet set) {
  std::vector<uint32_t> dims;
  for (uint32_t d = 0; d < kernel.dims.size(); ++d) {
    if (has(set, d)) dims.push_back(d);
  }
  const auto key = [&](uint32_t dim) -> int64_t {
    for (const Kind kind : {Kind::kStore, Kind::kLoad}) {
      for (const Expr& e : kernel.exprs) {
        if (e.kind != kind) continue;
        if (const int64_t stride = stride_along(e.map, dim)) return stride;
      }
    }
    return INT64_MAX;
  };
  std::ranges::sort(dims, {}, [&](uint32_t dim) { return std::pair(-key(dim), dim); });
  return dims;
}

// Elements that are read in steps of one along the last of these dims.
int64_t contiguous_reads(const loop::LoopKernel& kernel, const std::vector<uint32_t>& dims) {
  if (dims.empty()) return 0;
  int64_t count = 0;
  for (const Expr& e : kernel.exprs) {
    if (e.kind == Kind::kLoad && stride_along(e.map, dims.back()) == 1) {
      count += kernel.buffers[e.buffer].elements;
    }
  }
  return count;
}

}  // namespace

void choose_lanes(Program& program, DimSet reduced) {
  const loop::LoopKernel& kernel = program.kernel;
  const std::vector<uint32_t> rows = ordered(kernel, reduced);
  const std::vector<uint32_t> points = ordered(kernel, ~reduced);
  const int64_t row = loop::points(kernel, reduced).value();
  const int64_t outer = loop::points(kernel, ~reduced).value();
  const bool columns =
      outer >= 16 && contiguous_reads(kernel, points) > contiguous_reads(kernel, rows);
  const bool short_rows = row < kShortRow && outer >= row;
  program.lanes_are_reduced = !rows.empty() && !columns && !short_rows;
  const bool by_row = program.lanes_are_reduced;
  program.lane_dims = by_row ? rows : points;
  program.other_dims = by_row ? points : rows;
  program.lane_points = by_row ? row : outer;
  program.other_points = by_row ? outer : row;
  const int64_t longest = by_row && row <= kLongestRow ? kLongestRow : kBlock;
  program.block = std::max<int64_t>(1, std::min(longest, program.lane_points));
  program.row_fits = by_row ? row <= program.block : row == 1;
}

}  // namespace kiln::host
