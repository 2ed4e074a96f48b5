#include "engine/host/loop/worker.h"

#include <algorithm>
#include <cstring>

#include "engine/host/dtype_conversion.h"

namespace kiln::host {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

// Whether a buffer's elements are lanes as they are. A stored bool may be any byte, so those are
// only written so.
bool stored_as_lanes(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI64 ||
         dtype == DType::kU64;
}

std::byte* element(void* buffer, int64_t index, size_t bytes) {
  return static_cast<std::byte*>(buffer) + index * static_cast<int64_t>(bytes);
}

void fill_lanes(DType dtype, uint64_t bits, void* lanes, int64_t count) {
  load_lanes(dtype, &bits, 0, 0, count, lanes);
}

void advance(std::vector<int64_t>& point, std::span<const uint32_t> dims,
             const std::vector<loop::Dim>& extents) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++point[dims[d]] < extents[dims[d]].extent) return;
    point[dims[d]] = 0;
  }
}

}  // namespace

Worker::Worker(const Program& program, std::span<void* const> buffers, std::byte* memory,
               bool forward)
    : program_(program),
      buffers_(buffers),
      memory_(memory),
      forward_(forward),
      lanes_(program.instructions.size()),
      point_(program.kernel.dims.size()) {
  for (ExprId id = 0; id < lanes_.size(); ++id) lanes_[id] = own_lanes(id);
}

int64_t Worker::task_count(const Program& program) {
  if (program.lanes_are_reduced) return program.other_points;
  return (program.lane_points + program.block - 1) / program.block;
}

std::optional<std::string> Worker::run(int64_t first, int64_t last) {
  if (first >= last) return std::nullopt;
  run_all(program_.once, 0, program_.lane_points);
  if (program_.lanes_are_reduced) {
    int64_t rest = first;
    const auto& dims = program_.other_dims;
    for (size_t d = dims.size(); d-- > 0;) {
      const int64_t extent = program_.kernel.dims[dims[d]].extent;
      point_[dims[d]] = rest % extent;
      rest /= extent;
    }
    for (int64_t task = first; task < last && !error_; ++task) {
      run_row();
      advance(point_, dims, program_.kernel.dims);
    }
  } else {
    for (int64_t task = first; task < last && !error_; ++task) {
      const int64_t position = task * program_.block;
      run_block(position, std::min(program_.block, program_.lane_points - position));
    }
  }
  return error_;
}

void Worker::run_block(int64_t position, int64_t count) {
  for (const Program::Level& level : program_.levels) {
    run_all(level.parallel, position, count);
    if (level.has_loop()) run_loop(level, position, count);
  }
  run_all(program_.last, position, count);
}

void Worker::run_row() { run_block(0, 1); }

void Worker::run_loop(const Program::Level& level, int64_t position, int64_t count) {
  const auto each_reduce = [&](auto&& visit) {
    for (const ExprId id : level.reduces) {
      const auto& made = program_.instructions[id];
      visit(id, made, made.uniform ? 1 : count);
    }
  };
  each_reduce([&](ExprId, const Program::Instruction& made, int64_t lanes) {
    made.reduction.start(memory_ + made.accumulators, lanes);
  });
  if (program_.lanes_are_reduced) {
    for (int64_t at = 0; at < program_.lane_points && !error_; at += program_.block) {
      const int64_t lanes = std::min(program_.block, program_.lane_points - at);
      run_all(level.reduced, at, lanes);
      accumulate(level, lanes);
    }
  } else {
    for (const uint32_t dim : program_.other_dims) point_[dim] = 0;
    for (int64_t i = 0; i < program_.other_points && !error_; ++i) {
      run_all(level.reduced, position, count);
      accumulate(level, count);
      advance(point_, program_.other_dims, program_.kernel.dims);
    }
  }
  each_reduce([&](ExprId id, const Program::Instruction& made, int64_t lanes) {
    made.reduction.finish(memory_ + made.accumulators, expr(id).dtype, lanes_[id], lanes);
  });
}

void Worker::accumulate(const Program::Level& level, int64_t count) {
  for (const ExprId id : level.reduces) {
    const auto& made = program_.instructions[id];
    const Operand x = operand(expr(id).args[0]);
    if (program_.lanes_are_reduced) {
      made.reduction.add_block(memory_ + made.accumulators, x, count);
    } else {
      made.reduction.add_lanes(memory_ + made.accumulators, x, made.uniform ? 1 : count);
    }
  }
}

void Worker::run_all(const std::vector<ExprId>& ids, int64_t position, int64_t count) {
  for (const ExprId id : ids) {
    const bool one = program_.instructions[id].uniform && expr(id).kind != Kind::kStore;
    execute(id, position, one ? 1 : count);
  }
}

void Worker::execute(ExprId id, int64_t position, int64_t count) {
  const Expr& e = expr(id);
  switch (e.kind) {
    case Kind::kConstant:
      return fill_lanes(e.dtype, e.constant, lanes_[id], count);
    case Kind::kIota:
      return iota(id, position, count);
    case Kind::kLoad:
      return load(id, position, count);
    case Kind::kApply:
      if (program_.instructions[id].range_test) return test_range(id, position, count);
      return apply(id, position, count);
    case Kind::kCast:
      return cast_lanes(expr(e.args[0]).dtype, lanes_[e.args[0]], e.dtype, lanes_[id], count,
                        e.saturate);
    case Kind::kReduce:
      return;  // run_loop() does it
    case Kind::kStore:
      return store(id, position, count);
  }
}

void Worker::iota(ExprId id, int64_t position, int64_t count) {
  auto* out = static_cast<int64_t*>(lanes_[id]);
  const DType dtype = expr(id).dtype;
  program_.instructions[id].access->for_each_run(position, count, point_, [&](const Run& run) {
    for (int64_t i = 0; i < run.count; ++i) {
      out[run.first + i] = wrap_integer(dtype, run.start + i * run.step);
    }
  });
}

void Worker::load(ExprId id, int64_t position, int64_t count) {
  const Expr& e = expr(id);
  const Access& access = *program_.instructions[id].access;
  if (e.map.gathers.empty() && access.is_one_run() && stored_as_lanes(e.dtype) &&
      (access.step() == 1 || count == 1)) {
    lanes_[id] = element(buffers_[e.buffer], access.address(position, point_),
                         lane_bytes(program_.instructions[id].lane));
    return;
  }
  lanes_[id] = own_lanes(id);
  access.for_each_run(position, count, point_, [&](const Run& run) { load_run(run, id); });
}

void Worker::load_run(const Run& run, ExprId id) {
  const Expr& e = expr(id);
  void* lanes = element(lanes_[id], run.first, lane_bytes(program_.instructions[id].lane));
  if (!run.inside) return fill_lanes(e.dtype, e.constant, lanes, run.count);
  if (!e.map.gathers.empty()) return gather_run(run, id);
  load_lanes(e.dtype, buffers_[e.buffer], run.start, run.step, run.count, lanes);
}

bool Worker::gathered_offset(const Expr& load, int64_t lane, int64_t& offset) {
  for (const loop::GatherTerm& gather : load.map.gathers) {
    const auto* index = static_cast<const int64_t*>(lanes_[gather.index]);
    const int64_t value = index[program_.instructions[gather.index].uniform ? 0 : lane];
    if (value < 0 || value >= gather.extent) {
      error_ = "gather: index " + std::to_string(value) + " is outside of [0, " +
               std::to_string(gather.extent) + ")";
      return false;
    }
    offset += value * gather.stride;
  }
  return true;
}

void Worker::gather_run(const Run& run, ExprId id) {
  const Expr& e = expr(id);
  const void* buffer = buffers_[e.buffer];
  const size_t bytes = lane_bytes(program_.instructions[id].lane);
  if (program_.instructions[id].gathers_rows) {
    int64_t start = run.start;
    if (!gathered_offset(e, run.first, start)) return;
    return load_lanes(e.dtype, buffer, start, run.step, run.count,
                      element(lanes_[id], run.first, bytes));
  }
  constexpr int64_t kChunk = 256;
  int64_t offsets[kChunk];
  for (int64_t at = 0; at < run.count; at += kChunk) {
    const int64_t count = std::min(kChunk, run.count - at);
    for (int64_t i = 0; i < count; ++i) {
      offsets[i] = run.start + (at + i) * run.step;
      if (!gathered_offset(e, run.first + at + i, offsets[i])) return;
    }
    load_lanes_at(e.dtype, buffer, offsets, count, element(lanes_[id], run.first + at, bytes));
  }
}

void Worker::test_range(ExprId id, int64_t position, int64_t count) {
  lanes_[id] = own_lanes(id);
  auto* out = static_cast<uint8_t*>(lanes_[id]);
  program_.instructions[id].access->for_each_run(position, count, point_, [&](const Run& run) {
    std::memset(out + run.first, run.inside ? 1 : 0, static_cast<size_t>(run.count));
  });
}

void Worker::apply(ExprId id, int64_t position, int64_t count) {
  const Expr& e = expr(id);
  const Program::Instruction& made = program_.instructions[id];
  lanes_[id] = own_lanes(id);
  if (forward_ && made.forwards_to) {
    const Expr& to = expr(*made.forwards_to);
    const Access& access = *program_.instructions[*made.forwards_to].access;
    if (access.is_one_run() && access.step() == 1) {
      lanes_[id] =
          element(buffers_[to.buffer], access.address(position, point_), lane_bytes(made.lane));
    }
  }
  Operand args[3];
  for (size_t a = 0; a < e.args.size(); ++a) args[a] = operand(e.args[a]);
  if (count == 1) {
    for (Operand& arg : args) arg.uniform = true;
  }
  made.function(args, made.arg_types.data(), lanes_[id], count);
}

void Worker::store(ExprId id, int64_t position, int64_t count) {
  const Expr& e = expr(id);
  const ExprId arg = e.args[0];
  const Access& access = *program_.instructions[id].access;
  const size_t bytes = lane_bytes(program_.instructions[id].lane);
  const void* from = lanes_[arg];
  if (forward_ && program_.instructions[arg].forwards_to == id && from != own_lanes(arg)) return;
  if (program_.instructions[arg].uniform && count > 1) {
    // One lane becomes a block of them.
    std::byte* block = memory_ + program_.scratch;
    for (int64_t i = 0; i < count; ++i) std::memcpy(block + i * bytes, from, bytes);
    from = block;
  }
  access.for_each_run(position, count, point_, [&](const Run& run) {
    store_lanes(e.dtype, buffers_[e.buffer], run.start, run.step, run.count,
                static_cast<const std::byte*>(from) + run.first * static_cast<int64_t>(bytes),
                e.saturate);
  });
}

}  // namespace kiln::host
