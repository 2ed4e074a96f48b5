#include <algorithm>
#include <map>

#include "engine/host/loop/program_parts.h"

namespace kiln::host {
namespace {

using loop::ExprId;
using Kind = loop::Expr::Kind;

class Allocator {
 public:
  Allocator(Program& program, const Dependences& on) : program_(program), on_(on) {}

  void run() {
    find_lifetimes();
    const std::vector<ExprId> order = reserve_single_lanes();
    place_blocks(order);
    program_.scratch = reserve(8 * block());
  }

 private:
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
    lifetimes_.assign(on_.size(), {});
    constexpr int kForever = 1 << 30;
    for (const ExprId id : program_.once) lifetimes_[id] = {0, kForever};
    int time = 1;
    const auto straight = [&](const std::vector<ExprId>& ids) {
      for (const ExprId id : ids) {
        for (const ExprId arg : on_.operands(id)) touch(arg, time);
        touch(id, time++);
      }
    };
    for (const Program::Level& level : program_.levels) {
      straight(level.parallel);
      const int start = time;
      straight(level.reduced);
      for (const ExprId id : level.reduces) touch(on_.expr(id).args[0], time);
      // Another round of the loop reads them again.
      for (ExprId id = 0; id < on_.size(); ++id) {
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

  size_t block() const { return static_cast<size_t>(program_.block); }

  // Accumulators, and values of one lane; returns the exprs that need blocks, the first made first.
  std::vector<ExprId> reserve_single_lanes() {
    std::vector<ExprId> blocks;
    for (ExprId id = 0; id < on_.size(); ++id) {
      Program::Instruction& made = program_.instructions[id];
      if (on_.expr(id).kind == Kind::kReduce) {
        made.accumulators = reserve(8 * (program_.lanes_are_reduced || made.uniform ? 1 : block()));
      }
      if (lifetimes_[id].first < 0 || on_.expr(id).kind == Kind::kStore) continue;
      if (made.uniform)
        made.offset = reserve(8);
      else
        blocks.push_back(id);
    }
    std::ranges::sort(blocks, {}, [&](ExprId id) { return std::pair(lifetimes_[id].first, id); });
    return blocks;
  }

  void place_blocks(const std::vector<ExprId>& order) {
    std::map<size_t, std::vector<size_t>> free;  // offsets by size
    std::multimap<int, ExprId> live;             // by last use
    for (const ExprId id : order) {
      // Lanes that are read for the last time where these are made may be overwritten by them.
      while (!live.empty() && live.begin()->first <= lifetimes_[id].first) {
        const Program::Instruction& dead = program_.instructions[live.begin()->second];
        free[lane_bytes(dead.lane)].push_back(dead.offset);
        live.erase(live.begin());
      }
      const size_t bytes = lane_bytes(program_.instructions[id].lane);
      std::vector<size_t>& pool = free[bytes];
      if (pool.empty()) pool.push_back(reserve(bytes * block()));
      program_.instructions[id].offset = pool.back();
      pool.pop_back();
      live.emplace(lifetimes_[id].last, id);
    }
  }

  Program& program_;
  const Dependences& on_;
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

void allocate(Program& program, const Dependences& on) { Allocator(program, on).run(); }

}  // namespace kiln::host
