#include "builder/tactics/lower_nodes.h"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

HostTensor scalar_i64(int64_t value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return {{DType::kI64, {}}, SharedBytes::take(std::move(bytes))};
}

}  // namespace

LocalBuffer NodeLowering::temporary(TensorType type) {
  lowered_.temporaries.push_back(std::move(type));
  return {LocalBuffer::Kind::kTemporary, static_cast<uint32_t>(lowered_.temporaries.size() - 1)};
}

LocalBuffer NodeLowering::buffer_of(const Graph& body, ValueId value, Bindings& bindings) {
  if (const auto found = bindings.find(value); found != bindings.end()) return found->second;
  const ir::Value& known = body.value(value);
  LocalBuffer buffer;
  if (known.constant) {
    lowered_.constants.push_back({known.type, *known.constant});
    buffer = {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered_.constants.size() - 1)};
  } else {
    buffer = temporary(known.type);
  }
  return bindings[value] = buffer;
}

NodeLowering::Bindings NodeLowering::bind_region(const Graph& body) {
  Bindings bindings;
  for (uint32_t i = 0; i < body.inputs().size(); ++i) {
    bindings[body.inputs()[i]] = {LocalBuffer::Kind::kInput, i};
  }
  for (uint32_t i = 0; i < body.outputs().size(); ++i) {
    const ValueId output = body.outputs()[i];
    if (body.value(output).producer != ir::kNoNode) {
      bindings.try_emplace(output, LocalBuffer{LocalBuffer::Kind::kOutput, i});
    }
  }
  return bindings;
}

void NodeLowering::copy_outputs(const Graph& body, Bindings& bindings) {
  for (uint32_t i = 0; i < body.outputs().size(); ++i) {
    const LocalBuffer to{LocalBuffer::Kind::kOutput, i};
    const LocalBuffer from = buffer_of(body, body.outputs()[i], bindings);
    if (from != to) add(LocalCopy{from, to});
  }
}

Result<> NodeLowering::lower_region(const Graph& body) {
  Bindings bindings = bind_region(body);
  KILN_RETURN_IF_ERROR(lower_nodes(body, body.topological_order(), bindings));
  copy_outputs(body, bindings);
  return Ok();
}

Result<> NodeLowering::lower_nodes(const Graph& body, std::span<const ir::NodeId> nodes,
                                   Bindings& bindings) {
  for (ir::NodeId id : nodes) {
    auto done = lower_node(body, body.node(id), bindings);
    if (!done.ok()) return std::move(done).error().context("node '" + body.node(id).name + "'");
  }
  return Ok();
}

Result<> NodeLowering::lower_node(const Graph& body, const ir::Node& node, Bindings& bindings) {
  std::vector<LocalBuffer> inputs, outputs;
  for (ValueId id : node.inputs) inputs.push_back(buffer_of(body, id, bindings));
  for (ValueId id : node.outputs) outputs.push_back(buffer_of(body, id, bindings));
  if (const auto* plugin = std::get_if<ir::PluginCall>(&node.op)) {
    add(HostPluginCall{plugin->name, plugin->version, plugin->attributes, inputs, outputs});
    return Ok();
  }
  if (const auto* branch = std::get_if<ir::If>(&node.op)) {
    return lower_if(*branch, inputs, outputs);
  }
  if (const auto* loop = std::get_if<ir::Loop>(&node.op)) return lower_loop(*loop, inputs, outputs);
  if (const auto* region = std::get_if<ir::Region>(&node.op)) {
    return lower_body(*region->body, inputs, outputs);
  }
  auto operation = ir::operation_of(node.op);
  if (!operation) return Error{ErrorCode::kInternal, "an operation has no host kernel"};
  if (rename_) operation = rename_(node, std::move(*operation));
  add(HostCall{std::move(*operation), std::move(inputs), std::move(outputs)});
  return Ok();
}

// A body whose inputs are `arguments` and whose outputs end up in `results`.
Result<> NodeLowering::lower_body(const Graph& body, std::span<const LocalBuffer> arguments,
                                  std::span<const LocalBuffer> results) {
  Bindings bindings;
  for (size_t i = 0; i < arguments.size(); ++i) bindings[body.inputs()[i]] = arguments[i];
  KILN_RETURN_IF_ERROR(lower_nodes(body, body.topological_order(), bindings));
  for (size_t i = 0; i < results.size(); ++i) {
    add(LocalCopy{buffer_of(body, body.outputs()[i], bindings), results[i]});
  }
  return Ok();
}

Result<> NodeLowering::lower_if(const ir::If& op, std::span<const LocalBuffer> inputs,
                                std::span<const LocalBuffer> outputs) {
  const size_t at = lowered_.steps.size();
  add(LocalBranch{inputs[0]});
  KILN_RETURN_IF_ERROR(lower_body(*op.then_body, inputs.subspan(1), outputs));
  const size_t middle = lowered_.steps.size();
  KILN_RETURN_IF_ERROR(lower_body(*op.else_body, inputs.subspan(1), outputs));
  auto& branch = std::get<LocalBranch>(lowered_.steps[at]);
  branch.then_steps = static_cast<uint32_t>(middle - at - 1);
  branch.else_steps = static_cast<uint32_t>(lowered_.steps.size() - middle);
  return Ok();
}

// Carried values live in temporaries of their own for all rounds; each round writes its results
// beside them and copies them over at its end, since a round reads the old ones until then.
Result<> NodeLowering::lower_loop(const ir::Loop& op, std::span<const LocalBuffer> inputs,
                                  std::span<const LocalBuffer> outputs) {
  const Graph& body = *op.body;
  const auto carried = static_cast<size_t>(op.carried);
  const auto scan_count = outputs.size() - carried;
  LocalRepeat repeat;
  repeat.trip_count = inputs[0];
  if (op.trip_count >= 0) {
    lowered_.constants.push_back(scalar_i64(op.trip_count));
    repeat.trip_count = {LocalBuffer::Kind::kConstant,
                         static_cast<uint32_t>(lowered_.constants.size() - 1)};
  }
  repeat.iteration = temporary({DType::kI64, {}});
  repeat.condition = temporary({DType::kBool, {}});
  add(LocalCopy{inputs[1], repeat.condition});
  std::vector<LocalBuffer> arguments = {repeat.iteration, repeat.condition};
  for (size_t i = 0; i < carried; ++i) {
    arguments.push_back(temporary(body.type(body.inputs()[i + 2])));
    add(LocalCopy{inputs[i + 2], arguments.back()});
  }
  arguments.insert(arguments.end(), inputs.begin() + 2 + op.carried, inputs.end());
  const size_t at = lowered_.steps.size();
  add(repeat);
  std::vector<LocalBuffer> results;
  for (ValueId id : body.outputs()) results.push_back(temporary(body.type(id)));
  KILN_RETURN_IF_ERROR(lower_body(body, arguments, results));
  for (size_t i = 0; i < scan_count; ++i) {
    add(HostCall{
        {"write_row", {}}, {results[1 + carried + i], repeat.iteration}, {outputs[carried + i]}});
  }
  for (size_t i = 0; i < carried + 1; ++i) add(LocalCopy{results[i], arguments[i + 1]});
  std::get<LocalRepeat>(lowered_.steps[at]).body_steps =
      static_cast<uint32_t>(lowered_.steps.size() - at - 1);
  for (size_t i = 0; i < carried; ++i) add(LocalCopy{arguments[i + 2], outputs[i]});
  return Ok();
}

}  // namespace kiln
