// The candidates that are worth timing. What a family cannot do with the kernel is left out by
// asking emit_cuda.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "builder/codegen/cuda/emit_cuda.h"
#include "builder/codegen/cuda/kernel_facts.h"
#include "builder/codegen/cuda/schedule.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using Kind = loop::Expr::Kind;

constexpr size_t kMost = 12;
constexpr int64_t kLargeBytes = 32 << 20;  // most of what the second cache holds
constexpr int64_t kThreadsPerMultiprocessor = 2048;

class Chooser {
 public:
  Chooser(const loop::LoopKernel& kernel, const CudaLimits& limits)
      : facts_(kernel), resident_(limits.multiprocessors * kThreadsPerMultiprocessor) {}

  std::vector<CudaSchedule> run() {
    if (facts_.reduced == 0 && facts_.levels == 1) {
      offer_points();
    } else if (reads_columns()) {
      offer_columns();
      offer_rows(3);
    } else {
      offer_rows(5);
      offer_clusters();
      offer_rows(9);
      if (chosen_.size() < 4) offer_columns();
    }
    offer_splits();
    offer_streams();
    if (chosen_.empty()) chosen_.emplace_back();
    return std::move(chosen_);
  }

 private:
  void offer(const CudaSchedule& schedule) {
    if (std::ranges::find(chosen_, schedule) != chosen_.end()) return;
    if (emit_cuda(facts_.kernel, schedule).ok()) chosen_.push_back(schedule);
  }

  // The best guesses again, past the caches, where nobody would find such buffers there anyway.
  void offer_streams() {
    const bool large = std::ranges::any_of(facts_.kernel.buffers, [](const loop::Buffer& buffer) {
      return buffer.elements * bits_of(buffer.dtype) / 8 >= kLargeBytes;
    });
    std::vector<CudaSchedule> streams;
    for (size_t i = 0; large && i < chosen_.size() && streams.size() < 3; ++i) {
      CudaSchedule stream = chosen_[i];
      stream.stream = true;
      if (emit_cuda(facts_.kernel, stream).ok()) streams.push_back(stream);
    }
    chosen_.resize(std::min(chosen_.size(), kMost - streams.size()));
    chosen_.insert(chosen_.end(), streams.begin(), streams.end());
  }

  // Where rows with a block each leave most of the GPU idle.
  void offer_splits() {
    if (facts_.levels == 1 || chosen_.empty()) return;
    const int64_t rows = std::max<int64_t>(facts_.extent(facts_.parallel), 1);
    const int64_t row = facts_.extent(facts_.reduced);
    if (rows * 1024 > resident_ / 2 || row < 16384) return;
    for (const int64_t blocks : {resident_ / 512, resident_ / 2048}) {
      const int64_t parts =
          std::clamp<int64_t>(blocks / rows, 2, std::min<int64_t>(row / 2048, 1024));
      // Behind the best of one launch, which needs no workspace.
      CudaSchedule split{.family = Family::kSplit, .threads = 1024};
      while (split.group < parts) split.group *= 2;
      if (emit_cuda(facts_.kernel, split).ok() && std::ranges::count(chosen_, split) == 0) {
        chosen_.insert(chosen_.begin() + 1, split);
      }
    }
  }

  // The largest power of 2 up to `most` that divides the innermost extent of the dims.
  uint32_t vector_along(loop::DimSet dims, uint32_t most) const {
    const std::vector<uint32_t> order = facts_.ordered(dims);
    if (order.empty()) return 1;
    const int64_t extent = facts_.kernel.dims[order.back()].extent;
    return static_cast<uint32_t>(std::gcd(extent, int64_t{most}));
  }

  // Vectors of 16 bytes: of the widest element, then of the narrowest.
  struct Widths {
    uint32_t narrow = 1, wide = 1;
  };
  Widths vectors(loop::DimSet dims) const {
    int widest = 8, narrowest = 64;
    for (const loop::Buffer& buffer : facts_.kernel.buffers) {
      // Scalars and small rows stay in the cache.
      if (buffer.elements * 64 < facts_.extent(facts_.parallel | facts_.reduced)) continue;
      widest = std::max(widest, bits_of(buffer.dtype));
      narrowest = std::min(narrowest, std::max(8, bits_of(buffer.dtype)));
    }
    narrowest = std::max(narrowest, widest / 4);
    const auto count = [&](int bits) {
      return vector_along(dims, static_cast<uint32_t>(128 / std::min(bits, widest)));
    };
    return {count(widest), count(narrowest)};
  }

  // Only a transpose takes them.
  void offer_tiles(uint32_t vector) {
    const auto tile = [&](uint32_t width, uint32_t edge) {
      offer({.family = Family::kTiles, .threads = 256, .vector = width, .group = edge});
    };
    tile(vector, 64);
    tile(vector, 32);
    if (vector > 2) tile(2, 64);
    tile(1, 32);
  }

  void offer_points() {
    const auto [narrow, wide] = vectors(facts_.parallel);
    const auto point = [&](uint32_t threads, uint32_t vector, uint32_t unroll) {
      offer({.family = Family::kPoints, .threads = threads, .vector = vector, .unroll = unroll});
    };
    offer_tiles(narrow);
    const int64_t points = facts_.extent(facts_.parallel);
    // Few points: rather more threads than wider vectors.
    if (points < resident_ * narrow / 2) {
      for (uint32_t vector = narrow; vector >= 1; vector /= 2) {
        point(vector == 1 ? 256 : 128, vector, 1);
      }
      point(256, narrow, 1);
      point(64, narrow, 1);
    }
    if (points >= resident_ / 4) {
      point(256, narrow, 2);
      point(256, narrow, 1);
      point(256, wide, 1);
      point(128, narrow, 4);
      point(512, narrow, 1);
      point(128, wide, 2);
      point(1024, narrow, 1);
      point(256, std::max(1u, narrow / 2), 4);
      point(256, 1, 4);
      point(256, 1, 1);
    }
  }

  // Whether more elements are read in steps of one along a parallel dim than along a reduced one.
  bool reads_columns() const {
    const int64_t rows = contiguous_reads(facts_.reduced);
    return contiguous_reads(facts_.parallel) > rows && facts_.parallel != 0;
  }
  int64_t contiguous_reads(loop::DimSet dims) const {
    const std::vector<uint32_t> order = facts_.ordered(dims);
    if (order.empty()) return 0;
    int64_t count = 0;
    for (const Expr& e : facts_.kernel.exprs) {
      if (e.kind != Kind::kLoad) continue;
      const bool steps = std::ranges::any_of(e.map.terms, [&](const loop::MapTerm& term) {
        return term.dim == order.back() && term.divisor == 1 && term.stride == 1;
      });
      if (steps) count += facts_.kernel.buffers[e.buffer].elements;
    }
    return count;
  }

  // A guess of the time: rounds of resident threads, times what each of them does one after the
  // other: its chunks and the steps of its reductions. Fewer threads are resident where each holds
  // much.
  double row_time(const CudaSchedule& s) const {
    const auto rows = static_cast<double>(facts_.extent(facts_.parallel));
    const auto row = static_cast<double>(facts_.extent(facts_.reduced));
    const double chunks = std::ceil(row / (s.group * s.vector));
    const double threads = rows * s.group;
    const double rounds = std::max(1.0, threads / static_cast<double>(resident_));
    const double passes = s.keep ? 1 : facts_.levels;
    const double combine = std::log2(s.group) + (s.group > 32 ? 8 : 0);
    const double reductions = facts_.levels - 1;
    const double held = s.keep ? chunks * s.vector : 0;
    const double crowded = std::max(0.0, held - 48);
    return rounds * (chunks * s.vector * (1 + passes) + 4 + reductions * combine) +
           20 * passes * (s.keep ? 1 : std::ceil(chunks / s.unroll)) + crowded * rounds * 4;
  }

  void offer_rows(size_t most) {
    const auto [narrow, wide] = vectors(facts_.reduced);
    const int64_t row = facts_.extent(facts_.reduced);
    std::vector<CudaSchedule> rows;
    std::vector<uint32_t> widths{narrow};
    if (wide != narrow) widths.push_back(wide);
    if (row < 128 * narrow && narrow > 1) widths.push_back(narrow / 2);
    for (const uint32_t vector : widths) {
      for (uint32_t group = 4; group <= 1024; group *= 2) {
        const uint32_t threads = group <= 32 ? 128 : group;
        if (group > 4 && int64_t{group} * vector >= 2 * row) continue;
        const CudaSchedule base{.family = Family::kRows,
                                .threads = threads,
                                .vector = vector,
                                .unroll = 1,
                                .group = group};
        CudaSchedule kept = base, passes = base;
        kept.keep = true;
        passes.unroll = 4;
        if (emit_cuda(facts_.kernel, kept).ok())
          rows.push_back(kept);
        else if (group >= 32)
          rows.push_back(passes);
      }
    }
    std::vector<std::pair<double, size_t>> order;
    for (const CudaSchedule& schedule : rows) order.emplace_back(row_time(schedule), order.size());
    std::ranges::sort(order);
    if (order.size() > most) order.resize(most);
    for (const auto& [time, at] : order) offer(rows[at]);
  }

  // Rows that would take all of a block's registers and leave loads of no other row in flight.
  void offer_clusters() {
    const uint32_t vector = vectors(facts_.reduced).narrow;
    const int64_t row = facts_.extent(facts_.reduced);
    if (row < 1024 * int64_t{vector}) return;
    std::vector<CudaSchedule> clusters;
    std::vector<std::pair<double, size_t>> order;
    for (uint32_t blocks = 2; blocks <= kMaxCluster; blocks *= 2) {
      for (const uint32_t threads : {128u, 256u, 512u}) {
        const CudaSchedule s{.family = Family::kRows,
                             .threads = threads,
                             .vector = vector,
                             .group = threads * blocks,
                             .keep = true};
        if (!emit_cuda(facts_.kernel, s).ok()) continue;
        order.emplace_back(row_time(s), order.size());
        clusters.push_back(s);
      }
    }
    std::ranges::sort(order);
    if (order.size() > 4) order.resize(4);
    for (const auto& [time, at] : order) offer(clusters[at]);
  }

  void offer_columns() {
    const auto [narrow, wide] = vectors(facts_.parallel);
    const int64_t points = facts_.extent(facts_.parallel);
    const int64_t rows = facts_.extent(facts_.reduced);
    const auto column = [&](uint32_t vector, uint32_t group) {
      const auto unroll = static_cast<uint32_t>(std::clamp<int64_t>(rows / group, 1, 4));
      offer({.family = Family::kColumns,
             .threads = 256,
             .vector = vector,
             .unroll = unroll,
             .group = group});
    };
    // As many threads to a column as it takes to fill the GPU.
    uint32_t group = 1;
    while (group < 32 && group * 2 <= rows && points / narrow * group < resident_) group *= 2;
    column(narrow, group);
    column(1, group);
    if (group > 1) column(narrow, group / 2);
    if (group < 32 && group * 2 <= rows) column(narrow, group * 2);
    column(std::max(1u, narrow / 2), group);
    column(narrow, 1);
  }

  KernelFacts facts_;
  int64_t resident_;
  std::vector<CudaSchedule> chosen_;
};

}  // namespace

std::vector<CudaSchedule> cuda_schedules(const loop::LoopKernel& kernel, const CudaLimits& limits) {
  return Chooser(kernel, limits).run();
}

}  // namespace kiln::codegen
