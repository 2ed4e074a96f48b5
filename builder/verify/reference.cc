#include "builder/verify/reference.h"

#include <cstring>
#include <memory>

#include "engine/host_kernels.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;
using Tensors = std::vector<HostTensor>;

constexpr size_t kWorkspaceAlignment = 64;

std::string node_text(const Graph& graph, NodeId id) {
  return "node '" + graph.node(id).name + "'";
}

Result<> check_size(const TensorType& type, const ReferenceOptions& options) {
  if (type.bytes() <= options.max_value_bytes) return Ok();
  return Error{ErrorCode::kOutOfMemory, "a value of type " + to_string(type) + " has " +
                                            std::to_string(type.bytes()) + " bytes, the limit is " +
                                            std::to_string(options.max_value_bytes)};
}

// Buffers of one operation: pointers to the inputs' bytes, and fresh outputs.
struct Buffers {
  std::vector<TensorType> input_types;
  std::vector<const void*> inputs;
  std::vector<std::vector<std::byte>> results;
  std::vector<void*> outputs;

  Tensors take(std::span<const TensorType> types) {
    Tensors tensors;
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].pop_back();
      tensors.push_back({types[i], SharedBytes::take(std::move(results[i]))});
    }
    return tensors;
  }
};

Result<Buffers> make_buffers(std::span<const HostTensor> inputs,
                             std::span<const TensorType> output_types,
                             const ReferenceOptions& options) {
  Buffers buffers;
  for (const HostTensor& input : inputs) {
    buffers.input_types.push_back(input.type);
    buffers.inputs.push_back(input.bytes.data());
  }
  for (const TensorType& type : output_types) {
    KILN_RETURN_IF_ERROR(check_size(type, options));
    // One byte more, so that an empty tensor has an address too.
    buffers.results.emplace_back(static_cast<size_t>(type.bytes()) + 1);
    buffers.outputs.push_back(buffers.results.back().data());
  }
  return buffers;
}

Result<Tensors> run_kernel(const Operation& operation, std::span<const HostTensor> inputs,
                           std::span<const TensorType> output_types,
                           const ReferenceOptions& options) {
  KILN_ASSIGN_OR_RETURN(Buffers buffers, make_buffers(inputs, output_types, options));
  bool done = false;
  if (options.accelerator) {
    KILN_ASSIGN_OR_RETURN(done, options.accelerator(operation, buffers.input_types, buffers.inputs,
                                                    output_types, buffers.outputs));
  }
  if (!done) {
    KILN_RETURN_IF_ERROR(run_host_operation(operation, buffers.input_types, buffers.inputs,
                                            output_types, buffers.outputs));
  }
  return buffers.take(output_types);
}

Result<Tensors> run_plugin(const ir::PluginCall& call, std::span<const HostTensor> inputs,
                           std::span<const TensorType> output_types,
                           const ReferenceOptions& options) {
  const Plugin* plugin = find_plugin(options.plugins, call.name, call.version);
  if (!plugin) {
    return Error{ErrorCode::kUnsupported, "plugin '" + call.name + "' version '" + call.version +
                                              "' is not loaded; give it with --plugin"};
  }
  KILN_ASSIGN_OR_RETURN(Buffers buffers, make_buffers(inputs, output_types, options));
  KILN_ASSIGN_OR_RETURN(const PluginInstance instance,
                        plugin->instantiate(call.attributes, buffers.input_types, output_types));
  std::vector<std::byte> workspace(instance.workspace_bytes() + kWorkspaceAlignment);
  void* aligned = workspace.data();
  size_t space = workspace.size();
  std::align(kWorkspaceAlignment, instance.workspace_bytes(), aligned, space);
  KILN_RETURN_IF_ERROR(instance.run(buffers.inputs, buffers.outputs, aligned));
  return buffers.take(output_types);
}

bool truth(const HostTensor& tensor) { return tensor.bytes.bytes[0] != std::byte{0}; }

Result<Tensors> run_if(const ir::If& op, std::span<const HostTensor> inputs,
                       const ReferenceOptions& options) {
  return run_reference(truth(inputs[0]) ? *op.then_body : *op.else_body, inputs.subspan(1),
                       options);
}

HostTensor scalar_tensor(DType dtype, int64_t value) {
  std::vector<std::byte> bytes(static_cast<size_t>(bits_of(dtype) / 8));
  std::memcpy(bytes.data(), &value, bytes.size());  // little endian
  return {{dtype, {}}, SharedBytes::take(std::move(bytes))};
}

// Stacks equally typed tensors along a new axis 0.
HostTensor stack(const std::vector<HostTensor>& parts, const TensorType& type) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(type.bytes()));
  for (const HostTensor& part : parts) {
    bytes.insert(bytes.end(), part.bytes.bytes.begin(), part.bytes.bytes.end());
  }
  return {type, SharedBytes::take(std::move(bytes))};
}

Result<Tensors> run_loop(const ir::Loop& op, std::span<const HostTensor> inputs,
                         std::span<const TensorType> output_types,
                         const ReferenceOptions& options) {
  const auto carried = static_cast<size_t>(op.carried);
  int64_t limit = 0;
  std::memcpy(&limit, inputs[0].bytes.data(), sizeof limit);
  // The body's inputs: iteration, condition, carried, captures; outputs: condition, carried, scans.
  Tensors state(inputs.begin(), inputs.end());
  std::vector<Tensors> scans(output_types.size() - carried);
  int64_t iteration = 0;
  for (; iteration < limit && truth(state[1]); ++iteration) {
    state[0] = scalar_tensor(DType::kI64, iteration);
    KILN_ASSIGN_OR_RETURN(Tensors results, run_reference(*op.body, state, options));
    for (size_t i = 0; i <= carried; ++i) state[i + 1] = results[i];
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(results[carried + 1 + i]);
  }
  if (!scans.empty() && iteration != op.trip_count) {
    return Error{ErrorCode::kInvalidArgument, "the loop ended after " + std::to_string(iteration) +
                                                  " rounds, its scanned outputs were built for " +
                                                  std::to_string(op.trip_count)};
  }
  Tensors outputs(state.begin() + 2, state.begin() + 2 + op.carried);
  for (size_t i = 0; i < scans.size(); ++i) {
    KILN_RETURN_IF_ERROR(check_size(output_types[carried + i], options));
    outputs.push_back(stack(scans[i], output_types[carried + i]));
  }
  return outputs;
}

// Values of one run; each is dropped after its last use.
class Values {
 public:
  explicit Values(const Graph& graph)
      : graph_(graph), values_(graph.value_count()), left_(graph.value_count()) {
    for (uint32_t i = 0; i < values_.size(); ++i) {
      left_[i] = graph.value(ValueId{i}).uses.size();
    }
    for (ValueId output : graph.outputs()) ++left_[index_of(output)];
  }

  void set(ValueId id, HostTensor tensor) { values_[index_of(id)] = std::move(tensor); }

  HostTensor get(ValueId id) const {
    const ir::Value& value = graph_.value(id);
    if (value.constant) return {value.type, *value.constant};
    return values_[index_of(id)];
  }

  HostTensor take(ValueId id) {
    HostTensor tensor = get(id);
    if (--left_[index_of(id)] == 0) values_[index_of(id)] = {};
    return tensor;
  }

 private:
  const Graph& graph_;
  std::vector<HostTensor> values_;
  std::vector<size_t> left_;
};

Result<> check_inputs(const Graph& graph, std::span<const HostTensor> inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return Error{ErrorCode::kInvalidArgument, "found " + std::to_string(inputs.size()) +
                                                  " inputs, expected " +
                                                  std::to_string(graph.inputs().size())};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& expected = graph.value(graph.inputs()[i]);
    if (inputs[i].type != expected.type) {
      return Error{ErrorCode::kInvalidArgument, "input '" + expected.name + "' is " +
                                                    to_string(inputs[i].type) + ", expected " +
                                                    to_string(expected.type)};
    }
  }
  return Ok();
}

}  // namespace

Result<Tensors> run_reference_op(const ir::Op& op, std::span<const HostTensor> inputs,
                                 std::span<const TensorType> output_types,
                                 const ReferenceOptions& options) {
  if (const auto operation = ir::operation_of(op)) {
    return run_kernel(*operation, inputs, output_types, options);
  }
  if (const auto* conditional = std::get_if<ir::If>(&op))
    return run_if(*conditional, inputs, options);
  if (const auto* loop = std::get_if<ir::Loop>(&op)) {
    return run_loop(*loop, inputs, output_types, options);
  }
  if (const auto* region = std::get_if<ir::Region>(&op)) {
    return run_reference(*region->body, inputs, options);
  }
  return run_plugin(std::get<ir::PluginCall>(op), inputs, output_types, options);
}

Result<Tensors> run_reference(const Graph& graph, std::span<const HostTensor> inputs,
                              const ReferenceOptions& options) {
  KILN_RETURN_IF_ERROR(check_inputs(graph, inputs));
  Values values(graph);
  for (size_t i = 0; i < inputs.size(); ++i) values.set(graph.inputs()[i], inputs[i]);
  for (NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    Tensors arguments;
    for (ValueId input : node.inputs) arguments.push_back(values.take(input));
    std::vector<TensorType> types;
    for (ValueId output : node.outputs) types.push_back(graph.type(output));
    auto results = run_reference_op(node.op, arguments, types, options);
    if (!results.ok()) return std::move(results).error().context(node_text(graph, id));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      values.set(node.outputs[i], std::move((*results)[i]));
    }
  }
  Tensors outputs;
  for (ValueId output : graph.outputs()) outputs.push_back(values.get(output));
  return outputs;
}

Result<HostTensor> convert_tensor(const HostTensor& tensor, DType dtype) {
  if (tensor.type.dtype == dtype) return tensor;
  const TensorType type{dtype, tensor.type.shape};
  KILN_ASSIGN_OR_RETURN(
      auto cast, run_reference_op(ir::Cast{dtype}, std::span(&tensor, 1), std::span(&type, 1)));
  return cast.front();
}

}  // namespace kiln
