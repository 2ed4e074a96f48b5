#include "engine/host/loop/program.h"

#include <algorithm>

#include "engine/host/loop/program_parts.h"

namespace kiln::host {

using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

Dependences::Dependences(const loop::LoopKernel& of)
    : kernel(of),
      reduced(loop::reduced_dims(of)),
      varying(loop::varying_dims(of)),
      level(of.exprs.size()) {
  for (ExprId id = 0; id < size(); ++id) {
    for (const ExprId arg : operands(id)) level[id] = std::max(level[id], level[arg]);
    if (expr(id).kind == Kind::kReduce) ++level[id];
  }
}

std::vector<ExprId> Dependences::operands(ExprId id) const {
  if (range_test(id)) return {};
  std::vector<ExprId> ids = expr(id).args;
  for (const auto& gather : expr(id).map.gathers) ids.push_back(gather.index);
  return ids;
}

std::optional<loop::Bound> Dependences::range_test(ExprId id) const {
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

namespace {

bool gathers_rows(const Dependences& on, const Expr& load, const Access& access) {
  return std::ranges::all_of(load.map.gathers, [&](const loop::GatherTerm& gather) {
    return (on.varying[gather.index] & access.dims_of_a_run()) == 0;
  });
}

void make_instructions(Program& program, const Dependences& on, DimSet lanes) {
  program.instructions.resize(on.size());
  for (ExprId id = 0; id < on.size(); ++id) {
    const Expr& e = on.expr(id);
    Program::Instruction& made = program.instructions[id];
    made.lane = lane_of(e.dtype);
    made.uniform = (on.varying[id] & lanes) == 0;
    for (const ExprId arg : e.args) made.arg_types.push_back(on.expr(arg).dtype);
    if (e.kind == Kind::kLoad || e.kind == Kind::kStore || e.kind == Kind::kIota) {
      made.access.emplace(program.kernel, e.map, e.bounds, program.lane_dims);
    }
    if (const auto bound = on.range_test(id)) {
      made.range_test = true;
      made.access.emplace(program.kernel, loop::IndexMap{}, std::span(&*bound, 1),
                          program.lane_dims);
    }
    if (e.kind == Kind::kLoad) made.gathers_rows = gathers_rows(on, e, *made.access);
    if (e.kind == Kind::kApply) made.function = lane_function(e.fn, made.arg_types.data());
    if (e.kind == Kind::kReduce) made.reduction = reduction(e.reduce_fn, e.dtype);
  }
}

// An apply whose lanes are what a store in the same place writes can write them itself.
void find_forwards(Program& program, const Dependences& on) {
  const auto look = [&](const std::vector<ExprId>& together, const std::vector<ExprId>& stores) {
    for (const ExprId id : stores) {
      if (on.expr(id).kind != Kind::kStore) continue;
      const ExprId arg = on.expr(id).args[0];
      const bool same_bits = lane_bytes(lane_of(on.expr(id).dtype)) * 8 ==
                             static_cast<size_t>(bits_of(on.expr(id).dtype));
      const bool made_here = std::ranges::find(together, arg) != together.end();
      Program::Instruction& made = program.instructions[arg];
      if (on.expr(arg).kind == Kind::kApply && same_bits && made_here && !made.uniform) {
        made.forwards_to = id;
      }
    }
  };
  for (const Program::Level& level : program.levels) {
    look(level.reduced, level.reduced);
    if (!program.lanes_are_reduced) look(level.parallel, program.last);
  }
}

}  // namespace

Program make_program(loop::LoopKernel kernel) {
  Program program;
  program.kernel = std::move(kernel);
  const Dependences on(program.kernel);
  choose_lanes(program, on.reduced);
  DimSet lanes = 0;
  for (const uint32_t dim : program.lane_dims) lanes |= DimSet{1} << dim;
  make_instructions(program, on, lanes);
  schedule(program, on);
  find_forwards(program, on);
  allocate(program, on);
  return program;
}

}  // namespace kiln::host
