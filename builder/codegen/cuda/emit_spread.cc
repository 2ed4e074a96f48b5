// The families that spread points over threads without more ado: points, rows, columns.

#include <algorithm>
#include <utility>

#include "builder/codegen/cuda/cuda_text.h"
#include "builder/codegen/cuda/kernel_text.h"
#include "builder/codegen/cuda/loop_code.h"

namespace kiln::codegen {
namespace {

// Kept loads and values may take this many registers of a thread's 255.
constexpr int64_t kMaxKept = 112;
// Elements of a row that a thread may have in unrolled code.
constexpr int64_t kMaxUnrolled = 128;
constexpr uint32_t kMaxColumnGroup = 32;
constexpr int64_t kMaxSharedBytes = 48 << 10;

std::string number(int64_t value) { return std::to_string(value); }
int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

class SpreadWriter {
 public:
  SpreadWriter(const KernelFacts& facts, const CudaSchedule& schedule, const KernelFrame& frame)
      : facts_(facts), s_(schedule), frame_(frame) {}

  Result<CudaSource> run() {
    index_ = facts_.wide_index ? "long long" : "int";
    switch (s_.family) {
      case Family::kPoints:
        KILN_RETURN_IF_ERROR(spread_points());
        break;
      case Family::kRows:
        KILN_RETURN_IF_ERROR(spread_rows());
        break;
      default:
        KILN_RETURN_IF_ERROR(spread_columns());
        break;
    }
    std::string body;
    for (const std::string& line : head_) body += "  " + line + "\n";
    return one_kernel(frame_, s_, blocks_, blocks_ == 0 ? body : body + loop_body(facts_, spread_));
  }

 private:
  Result<> choose_lanes(const std::vector<uint32_t>& dims) {
    if (s_.vector == 1) return Ok();
    const int64_t extent = dims.empty() ? 1 : facts_.kernel.dims[dims.back()].extent;
    if (extent % s_.vector != 0) {
      return unsuited(s_, "the innermost dim has " + number(extent) + " points");
    }
    spread_.lanes = {dims.back(), s_.vector, s_.stream};
    return Ok();
  }

  // --- families ---

  Result<> spread_points() {
    if (facts_.levels > 1 || facts_.reduced != 0) return unsuited(s_, "the kernel reduces");
    const std::vector<uint32_t> dims = facts_.ordered(facts_.parallel);
    KILN_RETURN_IF_ERROR(choose_lanes(dims));
    spread_.looped = facts_.parallel;
    spread_.chunks = spread_.batch = s_.unroll;
    const int64_t points = facts_.extent(facts_.parallel);
    const int64_t in_block = int64_t{s_.threads} * s_.vector * s_.unroll;
    blocks_ = ceil_div(points, in_block);
    head_.push_back("const " + index_ + " first = (" + index_ + ")blockIdx.x * " +
                    number(in_block) + " + (int)threadIdx.x * " + number(s_.vector) + ";");
    const int64_t stride = int64_t{s_.threads} * s_.vector;
    spread_.position = [=](const std::string& chunk) {
      return "first + " + chunk + " * " + number(stride);
    };
    if (points % in_block != 0) spread_.limit = number(points);
    spread_.leader_guard = "blockIdx.x == 0 && threadIdx.x == 0";
    return Ok();
  }

  Result<> spread_rows() {
    if (facts_.reduced == 0) return unsuited(s_, "the kernel has no reduced dims");
    const uint32_t cluster = cluster_of(s_);
    const bool block = s_.group >= s_.threads && s_.group > 32;
    if (!block && s_.group > 32) return unsuited(s_, "a group is up to 32 threads or a block");
    KILN_RETURN_IF_ERROR(choose_lanes(facts_.ordered(facts_.reduced)));
    spread_.looped = facts_.reduced;
    const int64_t row = facts_.extent(facts_.reduced);
    const int64_t at_once = int64_t{s_.group} * s_.vector;
    spread_.chunks = ceil_div(row, at_once);
    spread_.keep = s_.keep;
    spread_.batch = static_cast<uint32_t>(std::min<int64_t>(s_.unroll, spread_.chunks));
    spread_.batch = std::max(spread_.batch, 1u);
    // Chunks are unrolled, whether they keep anything or not.
    const bool many = spread_.chunks * s_.vector > kMaxUnrolled;
    if (s_.keep && (row < 1 || many || kept_registers(facts_, spread_) > kMaxKept)) {
      return unsuited(s_, "a row does not fit into registers");
    }
    const bool even = row % at_once == 0 && spread_.chunks % spread_.batch == 0;
    if (!even) spread_.limit = number(row);
    std::string thread =
        block ? "(int)threadIdx.x" : "(int)(threadIdx.x % " + number(s_.group) + ")";
    if (cluster > 1) {
      head_.emplace_back("arrive_at_cluster();");
      thread =
          "(int)(blockIdx.x % " + number(cluster) + " * " + number(s_.threads) + " + threadIdx.x)";
    }
    head_.push_back("const int lane = " + thread + ";");
    spread_.position = [this](const std::string& chunk) {
      return "((" + index_ + ")" + chunk + " * " + number(s_.group) + " + lane) * " +
             number(s_.vector);
    };
    fix_dims(block ? 1 : s_.threads / s_.group,
             block ? "" : "(int)threadIdx.x / " + number(s_.group), cluster);
    spread_.leader_guard = guard_ + (guard_.empty() ? "" : " && ") + "lane == 0";
    spread_.store_guard = guard_;
    spread_.combine = [this, block, cluster, first = true](const loop::Expr& reduce,
                                                           const std::string& accumulator) mutable {
      const std::string types = "<" + std::string(reduction_type(reduce.reduce_fn)) + ", " +
                                std::string(element_type(reduce.dtype)) + ", ";
      if (cluster > 1) {
        const bool waits = std::exchange(first, false);
        return "reduce_cluster" + types + number(s_.threads) + ", " + number(cluster) +
               (waits ? ", true>(" : ", false>(") + accumulator + ", s" + accumulator.substr(1) +
               ")";
      }
      if (block) {
        return "reduce_block" + types + number(s_.threads) + ">(" + accumulator + ", s" +
               accumulator.substr(1) + ")";
      }
      return "reduce_lanes" + types + number(s_.group) + ">(" + accumulator + ")";
    };
    if (block) share(s_.group / 32);
    return Ok();
  }

  Result<> spread_columns() {
    if (s_.group > kMaxColumnGroup) return unsuited(s_, "a column's group is up to 32 threads");
    const std::vector<uint32_t> dims = facts_.ordered(facts_.parallel);
    KILN_RETURN_IF_ERROR(choose_lanes(dims));
    spread_.looped = facts_.reduced;
    const int64_t rows = facts_.extent(facts_.reduced);
    spread_.chunks = ceil_div(rows, s_.group);
    spread_.batch =
        static_cast<uint32_t>(std::clamp<int64_t>(spread_.chunks, 1, int64_t{s_.unroll}));
    if (rows % s_.group != 0 || spread_.chunks % spread_.batch != 0) spread_.limit = number(rows);
    const uint32_t wide = s_.threads / s_.group;
    if (s_.group > 1) {
      const int64_t bytes = int64_t{s_.threads} * s_.vector * 8 * count_reduces();
      if (bytes > kMaxSharedBytes) return unsuited(s_, "too much shared memory");
      head_.push_back("const int lane = (int)threadIdx.x / " + number(wide) + ";");
      head_.push_back("const int column = (int)threadIdx.x % " + number(wide) + ";");
    }
    spread_.position = [this](const std::string& chunk) {
      if (s_.group == 1) return "(" + index_ + ")" + chunk;
      return "(" + index_ + ")" + chunk + " * " + number(s_.group) + " + lane";
    };
    fix_dims(wide, s_.group > 1 ? "column" : "(int)threadIdx.x");
    spread_.store_guard = guard_;
    spread_.leader_guard = guard_;
    if (s_.group == 1) return Ok();
    spread_.leader_guard += (guard_.empty() ? "" : " && ") + std::string("lane == 0");
    spread_.combine = [this, wide](const loop::Expr& reduce, const std::string& accumulator) {
      const std::string slots = "s" + accumulator.substr(1, accumulator.find('[') - 1);
      const bool by_lane = accumulator.ends_with("[l]");
      return "reduce_columns<" + std::string(reduction_type(reduce.reduce_fn)) + ", " +
             std::string(element_type(reduce.dtype)) + ", " + number(s_.group) + ", " +
             number(wide) + ">(" + accumulator + ", " + slots + (by_lane ? "[l]" : "[0]") + ")";
    };
    share_columns();
    return Ok();
  }

  int64_t count_reduces() const {
    return std::ranges::count_if(facts_.kernel.exprs, [](const loop::Expr& e) {
      return e.kind == loop::Expr::Kind::kReduce;
    });
  }

  void share(uint32_t slots) {
    spread_.shared = [this, slots](loop::ExprId id) {
      return "KILN_SHARED " + std::string(register_type(facts_.expr(id).dtype)) + " s" +
             number(id) + "[" + number(slots) + "];";
    };
  }
  void share_columns() {
    spread_.shared = [this](loop::ExprId id) {
      return "KILN_SHARED " + std::string(register_type(facts_.expr(id).dtype)) + " s" +
             number(id) + "[" + number(s_.vector) + "][" + number(s_.threads) + "];";
    };
  }

  // The parallel dims of a thread: `in_block` vectors of points a block, or one a cluster of
  // blocks, this thread's `which`.
  void fix_dims(int64_t in_block, const std::string& which, uint32_t cluster = 1) {
    const std::vector<uint32_t> dims = facts_.ordered(facts_.parallel);
    const bool vectors = contains(facts_.parallel, spread_.lanes.dim) && spread_.lanes.count > 1;
    const int64_t step = vectors ? spread_.lanes.count : 1;
    const int64_t points = facts_.extent(facts_.parallel);
    blocks_ = ceil_div(points, in_block * step) * cluster;
    std::string index = "(" + index_ + ")blockIdx.x";
    if (cluster > 1) index = "(" + index_ + ")(blockIdx.x / " + number(cluster) + ")";
    if (in_block > 1) index = "(" + index + " * " + number(in_block) + " + " + which + ")";
    if (step > 1) index += " * " + number(step);
    if (points % (in_block * step) != 0) {
      head_.push_back("const " + index_ + " wanted = " + index + ";");
      head_.push_back("const bool active = wanted < " + number(points) + ";");
      index = "active ? wanted : 0";
      guard_ = "active";
    }
    head_.push_back("const " + index_ + " point = " + index + ";");
    for (std::string& line : dims_of_flat(facts_, dims, "point")) head_.push_back(std::move(line));
  }

  const KernelFacts& facts_;
  const CudaSchedule& s_;
  const KernelFrame& frame_;
  Spread spread_;
  std::string index_, guard_;
  std::vector<std::string> head_;
  int64_t blocks_ = 0;
};

}  // namespace

Result<CudaSource> emit_spread(const KernelFacts& facts, const CudaSchedule& schedule,
                               const KernelFrame& frame) {
  return SpreadWriter(facts, schedule, frame).run();
}

}  // namespace kiln::codegen
