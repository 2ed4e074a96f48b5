// If, Loop, Scan. What is decided by constants is decided now: a constant If leaves one branch, a
// Loop whose rounds are known is unrolled. The rest becomes ir::If and ir::Loop.
#include <algorithm>
#include <limits>

#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {
namespace {

constexpr int64_t kMaxUnrolledNodes = 20000;
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

std::string number(size_t value) { return std::to_string(value); }

bool truth(const HostTensor& tensor) { return tensor.bytes.data()[0] != std::byte{0}; }

// A value that is not known while importing, or one element.
std::optional<bool> known_bool(NodeContext& c, ValueId value) {
  const auto tensor = c.constant_of(value);
  if (!tensor || tensor->type.elements() != 1) return std::nullopt;
  return truth(*tensor);
}

// Records the inputs that would have to be fixed to decide this node while building.
void need_inputs_behind(NodeContext& c, std::span<const ValueId> values) {
  for (ValueId value : values) {
    if (value == kNoValue) continue;
    c.importer().need_values(c.scope(), Constants::inputs_behind(c.graph(), value));
  }
}

Scope body_scope(NodeContext& c, ir::Graph& graph) {
  const Scope& outer = c.scope();
  Scope inner;
  inner.graph = &graph;
  inner.parent = &c.scope();
  inner.attributes = outer.attributes;
  inner.opsets = outer.opsets;
  inner.prefix = outer.prefix;
  inner.origin = outer.origin;
  inner.depth = outer.depth + 1;
  return inner;
}

std::vector<ValueId> outer_values(const Scope& scope) {
  std::vector<ValueId> values;
  for (const Capture& capture : scope.captures) values.push_back(capture.outer);
  return values;
}

std::vector<Binding> tensors(const std::vector<ValueId>& values) {
  std::vector<Binding> bindings;
  for (ValueId value : values) bindings.push_back(Binding::tensor(value));
  return bindings;
}

// Both branches take the same captures in the same order: those of `from` that `to` lacks are
// appended to it as inputs.
void align_captures(const Scope& from, Scope& to) {
  for (size_t i = to.captures.size(); i < from.captures.size(); ++i) {
    const ir::Value& value = from.graph->value(from.captures[i].inner);
    to.captures.push_back({from.captures[i].outer, to.graph->add_input(value.name, value.type)});
  }
}

Bindings runtime_if(NodeContext& c, const onnx::Graph& then_body, const onnx::Graph& else_body) {
  auto then_graph = std::make_shared<ir::Graph>(), else_graph = std::make_shared<ir::Graph>();
  Scope then_scope = body_scope(c, *then_graph), else_scope = body_scope(c, *else_graph);
  auto result = c.importer().import_body(then_body, then_scope);
  if (!result.ok()) return std::move(result).error().context("then_branch");
  align_captures(then_scope, else_scope);
  result = c.importer().import_body(else_body, else_scope);
  if (!result.ok()) return std::move(result).error().context("else_branch");
  align_captures(else_scope, then_scope);
  std::vector<ValueId> inputs{c.reshape(c.input(0), {})};
  for (ValueId value : outer_values(then_scope)) inputs.push_back(value);
  return tensors(c.emit_all(ir::If{then_graph, else_graph}, inputs));
}

Bindings import_if(NodeContext& c, std::span<const Binding>) {
  const onnx::Graph* then_body = c.get_graph("then_branch");
  const onnx::Graph* else_body = c.get_graph("else_branch");
  if (!then_body || !else_body) return c.fail("then_branch or else_branch is missing");
  for (const auto* body : {then_body, else_body}) {
    if (body->outputs.size() == c.output_count()) continue;
    return c.fail((body == then_body ? "then_branch gives " : "else_branch gives ") +
                  number(body->outputs.size()) + " outputs, the node has " +
                  number(c.output_count()));
  }
  const TensorType condition = c.input_type(0);
  if (condition.dtype != DType::kBool || condition.elements() != 1) {
    return c.fail("the condition is " + to_string(condition) + ", expected one bool");
  }
  if (const auto known = known_bool(c, c.input(0))) {
    auto outputs = c.importer().inline_body(*known ? *then_body : *else_body, c.scope(), {});
    if (!outputs.ok()) {
      return std::move(outputs).error().context(*known ? "then_branch" : "else_branch");
    }
    return outputs;
  }
  auto outputs = runtime_if(c, *then_body, *else_body);
  if (!outputs.ok() || c.failed()) need_inputs_behind(c, std::vector<ValueId>{c.input(0)});
  return outputs;
}

// ---- Loop

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
  Scope scope = body_scope(c, *body.graph);
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

// ---- Scan: its length is an extent, so it is always unrolled

struct ScanNode {
  const onnx::Graph* body = nullptr;
  size_t states = 0, scanned = 0, outputs = 0;  // outputs: the stacked ones
  std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;
};

Result<ScanNode> read_scan(NodeContext& c) {
  ScanNode scan;
  scan.body = c.get_graph("body");
  const int64_t scanned = c.get_int("num_scan_inputs", 0);
  if (!scan.body || scanned < 1 || scanned > static_cast<int64_t>(c.input_count())) {
    return c.fail("body is missing, or num_scan_inputs is " + std::to_string(scanned));
  }
  if (c.opset() < 9)
    return c.unsupported("Scan of operator set 8 is not supported; use 9 or newer");
  scan.scanned = static_cast<size_t>(scanned);
  scan.states = c.input_count() - scan.scanned;
  if (scan.body->inputs.size() != c.input_count() || scan.body->outputs.size() < scan.states) {
    return c.fail("the body takes " + number(scan.body->inputs.size()) + " values, expected " +
                  number(c.input_count()));
  }
  scan.outputs = scan.body->outputs.size() - scan.states;
  const auto list = [&](const char* name, size_t count) {
    auto values = c.get_ints(name);
    values.resize(count, 0);
    return values;
  };
  scan.input_axes = list("scan_input_axes", scan.scanned);
  scan.output_axes = list("scan_output_axes", scan.outputs);
  scan.input_directions = list("scan_input_directions", scan.scanned);
  scan.output_directions = list("scan_output_directions", scan.outputs);
  return scan;
}

Result<int64_t> scan_length(NodeContext& c, ScanNode& scan) {
  std::optional<int64_t> length;
  for (size_t i = 0; i < scan.scanned; ++i) {
    const TensorType& type = c.input_type(scan.states + i);
    KILN_ASSIGN_OR_RETURN(scan.input_axes[i], c.normalise_axis(scan.input_axes[i], type.rank()));
    const int64_t extent = type.shape.at(static_cast<size_t>(scan.input_axes[i]));
    if (length && *length != extent) {
      return c.fail("scanned inputs have the lengths " + std::to_string(*length) + " and " +
                    std::to_string(extent));
    }
    length = extent;
  }
  const auto nodes = static_cast<int64_t>(scan.body->nodes.size()) + 1;
  if (*length < 1 || *length > kMaxUnrolledNodes / nodes) {
    return c.unsupported("a scan of length " + std::to_string(*length) + " over a body of " +
                         std::to_string(nodes - 1) + " nodes is not unrolled");
  }
  return *length;
}

Bindings import_scan(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(ScanNode scan, read_scan(c));
  KILN_ASSIGN_OR_RETURN(const int64_t length, scan_length(c, scan));
  std::vector<Binding> states(inputs.begin(), inputs.begin() + static_cast<int64_t>(scan.states));
  std::vector<std::vector<ValueId>> rows(scan.outputs);
  for (int64_t round = 0; round < length; ++round) {
    std::vector<Binding> arguments = states;
    for (size_t i = 0; i < scan.scanned; ++i) {
      const int64_t axis = scan.input_axes[i];
      const int64_t position = scan.input_directions[i] ? length - 1 - round : round;
      const ValueId row = c.slice_axis(c.input(scan.states + i), axis, position, 1);
      arguments.push_back(Binding::tensor(c.squeeze(row, {axis})));
    }
    auto outputs = c.importer().inline_body(*scan.body, c.scope(), arguments);
    if (!outputs.ok()) {
      return std::move(outputs).error().context("body, round " + std::to_string(round));
    }
    for (size_t i = 0; i < scan.states; ++i) states[i] = (*outputs)[i];
    for (size_t i = 0; i < scan.outputs; ++i) {
      rows[i].push_back((*outputs)[scan.states + i].value);
    }
  }
  for (size_t i = 0; i < scan.outputs; ++i) {
    KILN_ASSIGN_OR_RETURN(const int64_t axis,
                          c.normalise_axis(scan.output_axes[i], c.rank(rows[i][0]) + 1));
    if (scan.output_directions[i]) std::reverse(rows[i].begin(), rows[i].end());
    for (ValueId& row : rows[i]) row = c.unsqueeze(row, {axis});
    states.push_back(Binding::tensor(c.concat(rows[i], axis)));
  }
  return states;
}

constexpr BindingHandler kHandlers[] = {
    {"If", import_if},
    {"Loop", import_loop},
    {"Scan", import_scan},
};

}  // namespace

std::span<const BindingHandler> control_flow_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
