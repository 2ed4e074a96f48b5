#include "engine/host/loop/program.h"

#include <algorithm>
#include <map>

#include "formats/loop_ir/analysis.h"

namespace kiln::host {
namespace {

using loop::DimSet;
using loop::Expr;
using loop::ExprId;
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

class Compiler {
 public:
  explicit Compiler(loop::LoopKernel kernel) {
    program_.kernel = std::move(kernel);
    reduced_ = loop::reduced_dims(program_.kernel);
    varying_ = loop::varying_dims(program_.kernel);
  }

  Program run() {
    choose_lanes();
    find_levels();
    make_instructions();
    schedule();
    find_forwards();
    allocate();
    return std::move(program_);
  }

 private:
  const Expr& expr(ExprId id) const { return program_.kernel.exprs[id]; }
  size_t size() const { return program_.kernel.exprs.size(); }
  bool in_loop(ExprId id) const { return (varying_[id] & reduced_) != 0; }

  // --- lanes ---

  // Dims with the largest stride first: by the first store that moves along them, else load.
  std::vector<uint32_t> ordered(DimSet set) const {
    std::vector<uint32_t> dims;
    for (uint32_t d = 0; d < program_.kernel.dims.size(); ++d) {
      if (has(set, d)) dims.push_back(d);
    }
    const auto key = [&](uint32_t dim) -> int64_t {
      for (const Kind kind : {Kind::kStore, Kind::kLoad}) {
        for (const Expr& e : program_.kernel.exprs) {
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
  int64_t contiguous_reads(const std::vector<uint32_t>& dims) const {
    if (dims.empty()) return 0;
    int64_t count = 0;
    for (const Expr& e : program_.kernel.exprs) {
      if (e.kind == Kind::kLoad && stride_along(e.map, dims.back()) == 1) {
        count += program_.kernel.buffers[e.buffer].elements;
      }
    }
    return count;
  }

  void choose_lanes() {
    const std::vector<uint32_t> rows = ordered(reduced_);
    const std::vector<uint32_t> points = ordered(~reduced_);
    const int64_t row = loop::points(program_.kernel, reduced_).value();
    const int64_t outer = loop::points(program_.kernel, ~reduced_).value();
    const bool columns = outer >= 16 && contiguous_reads(points) > contiguous_reads(rows);
    const bool short_rows = row < kShortRow && outer >= row;
    program_.lanes_are_reduced = !rows.empty() && !columns && !short_rows;
    const bool by_row = program_.lanes_are_reduced;
    program_.lane_dims = by_row ? rows : points;
    program_.other_dims = by_row ? points : rows;
    program_.lane_points = by_row ? row : outer;
    program_.other_points = by_row ? outer : row;
    const int64_t longest = by_row && row <= kLongestRow ? kLongestRow : kBlock;
    program_.block = std::max<int64_t>(1, std::min(longest, program_.lane_points));
    program_.row_fits = by_row ? row <= program_.block : row == 1;
    for (const uint32_t dim : program_.lane_dims) lane_set_ |= DimSet{1} << dim;
  }

  // --- what is computed when ---

  // The number of reductions, one after the other, that an expr waits for.
  void find_levels() {
    level_.resize(size());
    for (ExprId id = 0; id < size(); ++id) {
      for (const ExprId arg : operands(id)) level_[id] = std::max(level_[id], level_[arg]);
      if (expr(id).kind == Kind::kReduce) ++level_[id];
    }
    program_.levels.resize(level_.empty() ? 1 : *std::ranges::max_element(level_) + 1);
  }

  std::vector<ExprId> operands(ExprId id) const {
    if (range_test(id)) return {};
    std::vector<ExprId> ids = expr(id).args;
    for (const auto& gather : expr(id).map.gathers) ids.push_back(gather.index);
    return ids;
  }

  // Comparing an index with a constant needs no lanes of indices: the bound that holds where the
  // comparison does.
  std::optional<loop::Bound> range_test(ExprId id) const {
    const Expr& e = expr(id);
    if (e.kind != Kind::kApply || (e.fn != ScalarFn::kLess && e.fn != ScalarFn::kGreaterEqual)) {
      return std::nullopt;
    }
    const Expr& index = expr(e.args[0]);
    const Expr& limit = expr(e.args[1]);
    if (index.kind != Kind::kIota || index.dtype != DType::kI64 || limit.kind != Kind::kConstant) {
      return std::nullopt;
    }
    const auto value = static_cast<int64_t>(limit.constant);
    const bool less = e.fn == ScalarFn::kLess;
    return loop::Bound{index.map, less ? INT64_MIN : value, less ? value : INT64_MAX};
  }

  // Exprs that a store needs, through whatever is computed for it.
  std::vector<bool> find_live() const {
    std::vector<bool> live(size());
    for (ExprId id = static_cast<ExprId>(size()); id-- > 0;) {
      if (expr(id).kind == Kind::kStore) live[id] = true;
      if (!live[id]) continue;
      for (const ExprId arg : operands(id)) live[arg] = true;
    }
    return live;
  }

  bool stores_in_loop(ExprId id) const {
    return ((varying_[id] | loop::dims_of(expr(id).map)) & reduced_) != 0;
  }

  bool is_hoisted(ExprId id) const {
    if (level_[id] != 0) return false;
    if (varying_[id] == 0) return true;
    const bool only_lanes = (varying_[id] & ~lane_set_) == 0;
    return program_.lanes_are_reduced && program_.row_fits && only_lanes;
  }

  void schedule() {
    placed_.assign(size(), false);
    const std::vector<bool> live = find_live();
    for (ExprId id = 0; id < size(); ++id) {
      if (!live[id]) continue;
      const Kind kind = expr(id).kind;
      if (kind == Kind::kReduce) {
        program_.levels[level_[id] - 1].reduces.push_back(id);
      } else if (kind == Kind::kStore) {
        if (!stores_in_loop(id)) program_.last.push_back(id);
      } else if (is_hoisted(id)) {
        program_.once.push_back(id);
        placed_[id] = true;
      } else if (!in_loop(id)) {
        program_.levels[level_[id]].parallel.push_back(id);
      }
    }
    for (uint32_t l = 0; l < program_.levels.size(); ++l) schedule_loop(l);
  }

  void schedule_loop(uint32_t l) {
    Program::Level& level = program_.levels[l];
    std::vector<bool> needed(size());
    for (const ExprId id : level.reduces) needed[expr(id).args[0]] = true;
    for (ExprId id = 0; id < size(); ++id) {
      if (expr(id).kind == Kind::kStore && stores_in_loop(id) && level_[id] == l) needed[id] = true;
    }
    for (ExprId id = static_cast<ExprId>(size()); id-- > 0;) {
      if (!needed[id]) continue;
      const bool computed_here = expr(id).kind == Kind::kStore || (in_loop(id) && !placed_[id]);
      needed[id] = computed_here;
      if (!computed_here) continue;
      for (const ExprId arg : operands(id)) needed[arg] = true;
    }
    for (ExprId id = 0; id < size(); ++id) {
      if (!needed[id]) continue;
      level.reduced.push_back(id);
      if (program_.row_fits) placed_[id] = true;
    }
  }

  // --- instructions ---

  void make_instructions() {
    program_.instructions.resize(size());
    for (ExprId id = 0; id < size(); ++id) {
      const Expr& e = expr(id);
      Program::Instruction& made = program_.instructions[id];
      made.lane = lane_of(e.dtype);
      made.uniform = (varying_[id] & lane_set_) == 0;
      for (const ExprId arg : e.args) made.arg_types.push_back(expr(arg).dtype);
      if (e.kind == Kind::kLoad || e.kind == Kind::kStore || e.kind == Kind::kIota) {
        made.access.emplace(program_.kernel, e.map, e.bounds, program_.lane_dims);
      }
      if (const auto bound = range_test(id)) {
        made.range_test = true;
        made.access.emplace(program_.kernel, loop::IndexMap{}, std::span(&*bound, 1),
                            program_.lane_dims);
      }
      if (e.kind == Kind::kLoad) made.gathers_rows = gathers_rows(e, *made.access);
      if (e.kind == Kind::kApply) made.function = lane_function(e.fn, made.arg_types.data());
      if (e.kind == Kind::kReduce) made.reduction = reduction(e.reduce_fn, e.dtype);
    }
  }

  bool gathers_rows(const Expr& load, const Access& access) const {
    return std::ranges::all_of(load.map.gathers, [&](const loop::GatherTerm& gather) {
      return (varying_[gather.index] & access.dims_of_a_run()) == 0;
    });
  }

  // An apply whose lanes are what a store in the same place writes can write them itself.
  void find_forwards() {
    const auto look = [&](const std::vector<ExprId>& together, const std::vector<ExprId>& stores) {
      for (const ExprId id : stores) {
        if (expr(id).kind != Kind::kStore) continue;
        const ExprId arg = expr(id).args[0];
        const bool same_bits =
            lane_bytes(lane_of(expr(id).dtype)) * 8 == static_cast<size_t>(bits_of(expr(id).dtype));
        const bool made_here = std::ranges::find(together, arg) != together.end();
        Program::Instruction& made = program_.instructions[arg];
        if (expr(arg).kind == Kind::kApply && same_bits && made_here && !made.uniform) {
          made.forwards_to = id;
        }
      }
    };
    for (const Program::Level& level : program_.levels) {
      look(level.reduced, level.reduced);
      if (!program_.lanes_are_reduced) look(level.parallel, program_.last);
    }
  }

  // --- memory ---

  // Positions in the order of execution. Lanes made inside a loop over several blocks are made
  // again in each loop, and lanes from outside stay for a whole loop.
  struct Lifetime {
    int first = -1, last = -1;
  };

  void touch(ExprId id, int time) {
    Lifetime& life = lifetimes_[id];
    if (life.first < 0) life.first = time;
    life.last = std::max(life.last, time);
  }

  void find_lifetimes() {
    lifetimes_.assign(size(), {});
    constexpr int kForever = 1 << 30;
    for (const ExprId id : program_.once) lifetimes_[id] = {0, kForever};
    int time = 1;
    const auto straight = [&](const std::vector<ExprId>& ids) {
      for (const ExprId id : ids) {
        for (const ExprId arg : operands(id)) touch(arg, time);
        touch(id, time++);
      }
    };
    for (const Program::Level& level : program_.levels) {
      straight(level.parallel);
      const int start = time;
      straight(level.reduced);
      for (const ExprId id : level.reduces) touch(expr(id).args[0], time);
      // Another round of the loop reads them again.
      for (ExprId id = 0; id < size(); ++id) {
        Lifetime& life = lifetimes_[id];
        if (life.first >= 0 && life.first < start && life.last >= start) life.last = time;
      }
      ++time;
      for (const ExprId id : level.reduces) touch(id, time++);
    }
    straight(program_.last);
  }

  static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

  size_t reserve(size_t bytes) {
    const size_t offset = program_.worker_bytes;
    program_.worker_bytes += aligned(bytes);
    return offset;
  }

  void allocate() {
    find_lifetimes();
    const auto block = static_cast<size_t>(program_.block);
    std::vector<ExprId> order;
    for (ExprId id = 0; id < size(); ++id) {
      Program::Instruction& made = program_.instructions[id];
      if (expr(id).kind == Kind::kReduce) {
        made.accumulators = reserve(8 * (program_.lanes_are_reduced || made.uniform ? 1 : block));
      }
      if (lifetimes_[id].first < 0 || expr(id).kind == Kind::kStore) continue;
      if (made.uniform)
        made.offset = reserve(8);
      else
        order.push_back(id);
    }
    std::ranges::sort(order, {}, [&](ExprId id) { return std::pair(lifetimes_[id].first, id); });
    std::map<size_t, std::vector<size_t>> free;  // offsets by size
    std::multimap<int, ExprId> live;             // by last use
    for (const ExprId id : order) {
      // Lanes that are read for the last time where these are made may be overwritten by them.
      while (!live.empty() && live.begin()->first <= lifetimes_[id].first) {
        const ExprId dead = live.begin()->second;
        free[lane_bytes(program_.instructions[dead].lane)].push_back(
            program_.instructions[dead].offset);
        live.erase(live.begin());
      }
      const size_t bytes = lane_bytes(program_.instructions[id].lane);
      std::vector<size_t>& pool = free[bytes];
      if (pool.empty()) pool.push_back(reserve(bytes * block));
      program_.instructions[id].offset = pool.back();
      pool.pop_back();
      live.emplace(lifetimes_[id].last, id);
    }
    program_.scratch = reserve(8 * block);
  }

  Program program_;
  DimSet reduced_ = 0, lane_set_ = 0;
  std::vector<DimSet> varying_;
  std::vector<uint32_t> level_;
  std::vector<bool> placed_;
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

Program make_program(loop::LoopKernel kernel) { return Compiler(std::move(kernel)).run(); }

}  // namespace kiln::host
