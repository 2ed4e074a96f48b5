// Worker: runs a program over some of its blocks (or rows), in memory of its own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/host/loop/program.h"

namespace kiln::host {

class Worker {
 public:
  // `memory`: program.worker_bytes, 64-byte aligned. `buffers`: one pointer a buffer.
  // `forward`: whether a result may go to its output before its block's inputs have all been read;
  // not so when an output lies in an input's memory.
  Worker(const Program& program, std::span<void* const> buffers, std::byte* memory, bool forward);

  static int64_t task_count(const Program& program);
  // Runs tasks [first, last). Returns what went wrong, if a gathered index was out of range.
  std::optional<std::string> run(int64_t first, int64_t last);

 private:
  using ExprId = loop::ExprId;

  void run_block(int64_t position, int64_t count);
  void run_row();
  // The loop over the reduced dims; count: lanes of the parallel block, 1 for a row.
  void run_loop(const Program::Level& level, int64_t position, int64_t count);
  void accumulate(const Program::Level& level, int64_t count);
  void run_all(const std::vector<ExprId>& ids, int64_t position, int64_t count);
  void execute(ExprId id, int64_t position, int64_t count);

  void load(ExprId id, int64_t position, int64_t count);
  void load_run(const Run& run, ExprId id);
  void gather_run(const Run& run, ExprId id);
  // The address part of an expr's gathers at a lane; false and an error if out of range.
  bool gathered_offset(const loop::Expr& load, int64_t lane, int64_t& offset);
  void store(ExprId id, int64_t position, int64_t count);
  void iota(ExprId id, int64_t position, int64_t count);
  void test_range(ExprId id, int64_t position, int64_t count);
  void apply(ExprId id, int64_t position, int64_t count);

  Operand operand(ExprId id) const { return {lanes_[id], program_.instructions[id].uniform}; }
  const loop::Expr& expr(ExprId id) const { return program_.kernel.exprs[id]; }
  std::byte* own_lanes(ExprId id) { return memory_ + program_.instructions[id].offset; }

  const Program& program_;
  std::span<void* const> buffers_;
  std::byte* memory_;
  bool forward_;
  std::vector<void*> lanes_;    // where each expr's lanes are now
  std::vector<int64_t> point_;  // the index along each dim
  std::optional<std::string> error_;
};

}  // namespace kiln::host
