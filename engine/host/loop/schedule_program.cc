#include <algorithm>

#include "engine/host/loop/program_parts.h"

namespace kiln::host {
namespace {

using loop::DimSet;
using loop::ExprId;
using Kind = loop::Expr::Kind;

class Scheduler {
 public:
  Scheduler(Program& program, const Dependences& on) : program_(program), on_(on) {
    for (const uint32_t dim : program_.lane_dims) lane_set_ |= DimSet{1} << dim;
  }

  void run() {
    program_.levels.resize(level_count());
    placed_.assign(on_.size(), false);
    const std::vector<bool> live = find_live();
    for (ExprId id = 0; id < on_.size(); ++id) {
      if (!live[id]) continue;
      const Kind kind = on_.expr(id).kind;
      if (kind == Kind::kReduce) {
        program_.levels[on_.level[id] - 1].reduces.push_back(id);
      } else if (kind == Kind::kStore) {
        if (!stores_in_loop(id)) program_.last.push_back(id);
      } else if (is_hoisted(id)) {
        program_.once.push_back(id);
        placed_[id] = true;
      } else if (!on_.in_loop(id)) {
        program_.levels[on_.level[id]].parallel.push_back(id);
      }
    }
    for (uint32_t l = 0; l < program_.levels.size(); ++l) schedule_loop(l);
  }

 private:
  size_t level_count() const {
    return on_.level.empty() ? 1 : *std::ranges::max_element(on_.level) + 1;
  }

  // Exprs that a store needs, through whatever is computed for it.
  std::vector<bool> find_live() const {
    std::vector<bool> live(on_.size());
    for (ExprId id = static_cast<ExprId>(on_.size()); id-- > 0;) {
      if (on_.expr(id).kind == Kind::kStore) live[id] = true;
      if (!live[id]) continue;
      for (const ExprId arg : on_.operands(id)) live[arg] = true;
    }
    return live;
  }

  bool stores_in_loop(ExprId id) const {
    return ((on_.varying[id] | loop::dims_of(on_.expr(id).map)) & on_.reduced) != 0;
  }

  bool is_hoisted(ExprId id) const {
    if (on_.level[id] != 0) return false;
    if (on_.varying[id] == 0) return true;
    const bool only_lanes = (on_.varying[id] & ~lane_set_) == 0;
    return program_.lanes_are_reduced && program_.row_fits && only_lanes;
  }

  void schedule_loop(uint32_t l) {
    Program::Level& level = program_.levels[l];
    std::vector<bool> needed(on_.size());
    for (const ExprId id : level.reduces) needed[on_.expr(id).args[0]] = true;
    for (ExprId id = 0; id < on_.size(); ++id) {
      if (on_.expr(id).kind == Kind::kStore && stores_in_loop(id) && on_.level[id] == l)
        needed[id] = true;
    }
    for (ExprId id = static_cast<ExprId>(on_.size()); id-- > 0;) {
      if (!needed[id]) continue;
      const bool computed_here =
          on_.expr(id).kind == Kind::kStore || (on_.in_loop(id) && !placed_[id]);
      needed[id] = computed_here;
      if (!computed_here) continue;
      for (const ExprId arg : on_.operands(id)) needed[arg] = true;
    }
    for (ExprId id = 0; id < on_.size(); ++id) {
      if (!needed[id]) continue;
      level.reduced.push_back(id);
      if (program_.row_fits) placed_[id] = true;
    }
  }

  Program& program_;
  const Dependences& on_;
  DimSet lane_set_ = 0;
  std::vector<bool> placed_;
};

}  // namespace

void schedule(Program& program, const Dependences& on) { Scheduler(program, on).run(); }

}  // namespace kiln::host
