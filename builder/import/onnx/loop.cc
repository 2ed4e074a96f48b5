// Loop: unrolled where its rounds are known, else ir::Loop.
#include <algorithm>
#include <limits>

#include "builder/import/onnx/bodies.h"

namespace kiln::onnx_import {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

std::string number(size_t value) { return std::to_string(value); }

struct LoopNode {
  const onnx::Graph* body = nullptr;
  ValueId trip_count = kNoValue;  // kNoValue: no bound
  ValueId condition = kNoValue;   // kNoValue: true
  std::vector<Binding> carried;
  size_t scans = 0;
};

Result<LoopNode> read_loop(NodeContext& c, std::span<const Binding> inputs) {
  LoopNode loop;
  loop.body = c.get_graph("body");
  if (!loop.body) return c.fail("body is missing");
  if (c.has(0)) loop.trip_count = c.reshape(c.cast(c.input(0), DType::kI64), {});
  if (c.has(1)) loop.condition = c.reshape(c.input(1), {});
  for (size_t i = 2; i < inputs.size(); ++i) loop.carried.push_back(inputs[i]);
  const size_t carried = loop.carried.size();
  if (loop.body->inputs.size() != carried + 2 || loop.body->outputs.size() < carried + 1) {
    return c.fail("the body takes " + number(loop.body->inputs.size()) + " values and gives " +
                  number(loop.body->outputs.size()) + ", expected " + number(carried + 2) +
                  " and at least " + number(carried + 1));
  }
  loop.scans = loop.body->outputs.size() - carried - 1;
  if (c.failed()) return *c.error();
  return loop;
}

// The body as a graph: iteration, condition, carried, captures -> condition, carried, scans.
struct LoopBody {
  std::shared_ptr<ir::Graph> graph;
  std::vector<ValueId> captured;
};

Result<LoopBody> import_loop_body(NodeContext& c, const LoopNode& loop) {
  LoopBody body{std::make_shared<ir::Graph>(), {}};
  Scope scope = body_scope(c.scope(), *body.graph);
  const auto bind = [&](size_t i, const TensorType& type) {
    const std::string& name = loop.body->inputs[i].name;
    scope.names[name] = Binding::tensor(body.graph->add_input(name, type));
  };
  bind(0, {DType::kI64, {}});
  bind(1, {DType::kBool, {}});
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    if (loop.carried[i].kind != Binding::Kind::kTensor) {
      return c.unsupported("a carried value is a sequence and the number of rounds is not known");
    }
    bind(i + 2, c.type(loop.carried[i].value));
  }
  auto result = c.importer().import_body(*loop.body, scope);
  if (!result.ok()) return std::move(result).error().context("body");
  body.captured = outer_values(scope);
  return body;
}

// Unrolls while the condition is known. nullopt: it is not; what was emitted so far goes unused.
Result<std::optional<std::vector<Binding>>> unroll(NodeContext& c, const LoopNode& loop,
                                                   int64_t rounds) {
  std::optional<std::vector<Binding>> nothing;
  const auto nodes = static_cast<int64_t>(loop.body->nodes.size()) + 1;
  std::vector<Binding> carried = loop.carried;
  std::vector<std::vector<ValueId>> scans(loop.scans);
  for (int64_t round = 0; round < rounds; ++round) {
    if (round * nodes > kMaxUnrolledNodes) return nothing;
    std::vector<Binding> arguments{Binding::tensor(c.scalar_int(round, DType::kI64)),
                                   Binding::tensor(c.scalar_int(1, DType::kBool))};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    auto outputs = c.importer().inline_body(*loop.body, c.scope(), arguments);
    if (!outputs.ok()) {
      return std::move(outputs).error().context("body, round " + std::to_string(round));
    }
    const auto go_on = known_bool(c, (*outputs)[0].value);
    if (!go_on) return nothing;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = (*outputs)[i + 1];
    for (size_t i = 0; i < loop.scans; ++i) {
      const Binding& row = (*outputs)[carried.size() + 1 + i];
      if (row.kind != Binding::Kind::kTensor) return nothing;
      scans[i].push_back(c.unsqueeze(row.value, {0}));
    }
    if (!*go_on) break;
  }
  for (const auto& rows : scans) {
    if (rows.empty()) return nothing;  // the row's type is not known: the body must be imported
    carried.push_back(Binding::tensor(c.concat(rows, 0)));
  }
  return std::optional(std::move(carried));
}

// No round runs: carried values pass through, scanned outputs have no rows.
Bindings skip_loop(NodeContext& c, const LoopNode& loop) {
  std::vector<Binding> outputs = loop.carried;
  if (loop.scans == 0) return outputs;
  KILN_ASSIGN_OR_RETURN(const LoopBody body, import_loop_body(c, loop));
  for (size_t i = 0; i < loop.scans; ++i) {
    TensorType type = body.graph->type(body.graph->outputs()[loop.carried.size() + 1 + i]);
    type.shape.insert(type.shape.begin(), 0);
    outputs.push_back(Binding::tensor(c.constant(type, SharedBytes::take({}))));
  }
  return outputs;
}

// What decides how many rounds there are, as far as values outside of the body do.
std::vector<ValueId> deciding_values(const LoopNode& loop) {
  std::vector<ValueId> values;
  for (const Binding& value : loop.carried) values.push_back(value.value);
  for (ValueId value : {loop.trip_count, loop.condition}) {
    if (value != kNoValue) values.push_back(value);
  }
  return values;
}

Bindings runtime_loop(NodeContext& c, const LoopNode& loop, std::optional<int64_t> rounds) {
  auto imported = import_loop_body(c, loop);
  if (!imported.ok()) {  // unrolled, it may succeed
    need_inputs_behind(c, deciding_values(loop));
    return std::move(imported).error();
  }
  const LoopBody& body = *imported;
  const ValueId condition = body.graph->outputs()[0];
  const auto bool_known = c.importer().constants().find(*body.graph, condition);
  const bool endless = condition == body.graph->inputs()[1] || (bool_known && truth(*bool_known));
  if (endless && rounds == kForever) {
    return c.unsupported(
        "the loop never ends: it has no trip count, and its body never changes the condition; give "
        "it either");
  }
  if (loop.scans > 0 && (!rounds || *rounds == kForever || !endless)) {
    need_inputs_behind(c, deciding_values(loop));
    need_inputs_behind(c, body.captured);
    return c.unsupported(
        "the number of rounds gives the length of a scanned output and is not "
        "known when building; fix the values of the inputs it depends on");
  }
  if (body.graph->type(condition) != TensorType{DType::kBool, {}}) {
    return c.unsupported("the body's condition is " + to_string(body.graph->type(condition)) +
                         ", expected bool[]");
  }
  std::vector<ValueId> inputs{
      loop.trip_count == kNoValue ? c.scalar_int(kForever, DType::kI64) : loop.trip_count,
      loop.condition == kNoValue ? c.scalar_int(1, DType::kBool) : loop.condition};
  for (const Binding& value : loop.carried) inputs.push_back(value.value);
  inputs.insert(inputs.end(), body.captured.begin(), body.captured.end());
  ir::Loop op{body.graph, static_cast<int64_t>(loop.carried.size()), -1};
  if (rounds && *rounds != kForever && endless) op.trip_count = *rounds;
  return tensors(c.emit_all(std::move(op), std::move(inputs)));
}

}  // namespace

Bindings import_loop(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(const LoopNode loop, read_loop(c, inputs));
  std::optional<int64_t> rounds = kForever;
  if (loop.trip_count != kNoValue) {
    const auto known = c.constant_of(loop.trip_count);
    rounds = known ? std::optional(std::max<int64_t>(to_ints(*known)[0], 0)) : std::nullopt;
  }
  const std::optional<bool> enters =
      loop.condition == kNoValue ? std::optional(true) : known_bool(c, loop.condition);
  if (rounds == 0 || enters == false) return skip_loop(c, loop);
  if (rounds && enters) {
    KILN_ASSIGN_OR_RETURN(auto outputs, unroll(c, loop, *rounds));
    if (outputs) return *std::move(outputs);
  }
  return runtime_loop(c, loop, rounds);
}

}  // namespace kiln::onnx_import
