#include "builder/clean/constant_value.h"

#include <cstring>
#include <map>

#include "builder/ir/match.h"
#include "builder/verify/reference.h"
#include "engine/host_kernels.h"

namespace kiln::clean {
namespace {

using ir::Graph;
using ir::ValueId;

bool all_elements_equal(const SharedBytes& bytes, size_t element_bytes) {
  // Each element equals the one before it exactly when the whole equals itself one element later.
  return bytes.size() <= element_bytes ||
         std::memcmp(bytes.data(), bytes.data() + element_bytes, bytes.size() - element_bytes) == 0;
}

std::optional<double> first_element(const TensorType& type, const SharedBytes& bytes) {
  const auto size = static_cast<size_t>(bits_of(type.dtype) / 8);
  SharedBytes first{bytes.owner, bytes.bytes.first(size)};
  auto wide = convert({type.dtype, {}}, first, DType::kF64);
  if (!wide.ok()) return std::nullopt;
  double number = 0;
  std::memcpy(&number, wide->data(), sizeof number);
  return number;
}

class Evaluation {
 public:
  Evaluation(const Graph& graph, int64_t max_bytes) : graph_(graph), max_bytes_(max_bytes) {}

  // The ancestors of `value`, producers first; nullopt if one is an input or too large.
  std::optional<std::vector<ir::NodeId>> ancestors(ValueId value) {
    std::vector<ir::NodeId> order;
    std::vector<std::pair<ir::NodeId, size_t>> stack;
    std::map<ir::NodeId, bool> seen;
    const auto enter = [&](ValueId id) {
      const ir::Value& entry = graph_.value(id);
      if (entry.type.bytes() > max_bytes_) return false;
      if (entry.constant) return true;
      if (entry.producer == ir::kNoNode) return false;
      const ir::Node& node = graph_.node(entry.producer);
      if (!ir::operation_of(node.op)) return false;
      if (seen.emplace(entry.producer, true).second) stack.emplace_back(entry.producer, 0);
      return true;
    };
    if (!enter(value)) return std::nullopt;
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const auto& inputs = graph_.node(node).inputs;
      if (next == inputs.size()) {
        order.push_back(node);
        stack.pop_back();
      } else if (!enter(inputs[next++])) {
        return std::nullopt;
      }
    }
    return order;
  }

  std::optional<SharedBytes> run(ValueId value) {
    const auto order = ancestors(value);
    if (!order) return std::nullopt;
    for (ir::NodeId id : *order) {
      const ir::Node& node = graph_.node(id);
      std::vector<HostTensor> inputs;
      for (ValueId input : node.inputs) inputs.push_back({graph_.type(input), bytes_of(input)});
      std::vector<TensorType> types;
      for (ValueId output : node.outputs) types.push_back(graph_.type(output));
      auto results = run_reference_op(node.op, inputs, types);
      if (!results.ok()) return std::nullopt;
      for (size_t i = 0; i < types.size(); ++i) known_[node.outputs[i]] = (*results)[i].bytes;
    }
    return bytes_of(value);
  }

 private:
  SharedBytes bytes_of(ValueId id) {
    const auto& constant = graph_.value(id).constant;
    return constant ? *constant : known_[id];
  }

  const Graph& graph_;
  int64_t max_bytes_;
  std::map<ValueId, SharedBytes> known_;
};

}  // namespace

Result<SharedBytes> convert(const TensorType& type, const SharedBytes& bytes, DType to) {
  if (type.dtype == to) return bytes;
  const HostTensor input{type, bytes};
  const TensorType target{to, type.shape};
  KILN_ASSIGN_OR_RETURN(auto results,
                        run_reference_op(ir::Cast{to, true}, {&input, 1}, {&target, 1}));
  return results[0].bytes;
}

std::optional<double> splat_of(const Graph& graph, ValueId value) {
  while (!graph.value(value).constant) {
    const bool view = ir::producer_as<ir::Reshape>(graph, value) ||
                      ir::producer_as<ir::Broadcast>(graph, value) ||
                      ir::producer_as<ir::Transpose>(graph, value);
    if (!view) return std::nullopt;
    value = ir::operand(graph, value, 0);
  }
  const TensorType& type = graph.type(value);
  const SharedBytes& bytes = *graph.value(value).constant;
  const int bits = bits_of(type.dtype);
  if (bits < 8 || type.elements() == 0) return std::nullopt;
  if (!all_elements_equal(bytes, static_cast<size_t>(bits / 8))) return std::nullopt;
  return first_element(type, bytes);
}

Result<std::vector<double>> read_doubles(const Graph& graph, ValueId value) {
  const TensorType& type = graph.type(value);
  KILN_ASSIGN_OR_RETURN(const SharedBytes wide,
                        convert(type, *graph.value(value).constant, DType::kF64));
  std::vector<double> elements(static_cast<size_t>(type.elements()));
  if (!elements.empty()) std::memcpy(elements.data(), wide.data(), wide.size());
  return elements;
}

Result<ValueId> add_doubles(Graph& graph, std::string name, const TensorType& type,
                            std::span<const double> elements) {
  const auto raw = std::as_bytes(elements);
  const auto wide = SharedBytes::take({raw.begin(), raw.end()});
  KILN_ASSIGN_OR_RETURN(SharedBytes bytes, convert({DType::kF64, type.shape}, wide, type.dtype));
  return graph.add_constant(std::move(name), type, std::move(bytes));
}

std::optional<SharedBytes> evaluate(const Graph& graph, ValueId value, int64_t max_bytes) {
  if (graph.value(value).constant) return *graph.value(value).constant;
  return Evaluation(graph, max_bytes).run(value);
}

}  // namespace kiln::clean
