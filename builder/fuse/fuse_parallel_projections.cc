#include "builder/fuse/fuse_parallel_projections.h"

#include <algorithm>
#include <array>
#include <map>

#include "builder/clean/constant_value.h"
#include "builder/clean/fold_constants.h"
#include "builder/clean/rewrite.h"

namespace kiln::fuse {
namespace {

using clean::Site;
using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// One projection: x W, or x W s of codes with a scale s, and maybe + b.
struct Projection {
  NodeId matmul;
  ValueId weights, scale, bias, result;  // scale and bias: kNoValue for none

  bool scaled() const { return scale != ir::kNoValue; }
  bool biased() const { return bias != ir::kNoValue; }
};

// Slicing the joined result must not cost a copy: what reads a projection must be able to read a
// part of a row, which generated loops can and library calls cannot.
bool readers_take_slices(const Graph& graph, ValueId value) {
  if (graph.is_output(value)) return false;
  const auto& uses = graph.value(value).uses;
  return std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
    const ir::Op& op = graph.node(use.node).op;
    return std::holds_alternative<ir::Pointwise>(op) || std::holds_alternative<ir::Cast>(op) ||
           std::holds_alternative<ir::Reshape>(op) || std::holds_alternative<ir::Transpose>(op) ||
           std::holds_alternative<ir::Slice>(op) || std::holds_alternative<ir::Reduce>(op) ||
           std::holds_alternative<ir::Concat>(op) || std::holds_alternative<ir::Gather>(op);
  });
}

// What `fn` joins to the projection's result, constant: one number a column, or for all of them.
ValueId take(const Graph& graph, ScalarFn fn, Projection& projection) {
  if (!ir::used_once(graph, projection.result)) return ir::kNoValue;
  const ir::Node& node = graph.node(graph.value(projection.result).uses[0].node);
  const auto* pointwise = std::get_if<ir::Pointwise>(&node.op);
  if (!pointwise || pointwise->fn != fn) return ir::kNoValue;
  const ValueId other = node.inputs[node.inputs[0] == projection.result ? 1 : 0];
  const TensorType& type = graph.type(other);
  const int64_t columns = graph.type(projection.result).shape.back();
  const bool one = fn == ScalarFn::kMul && type.elements() == 1;
  const bool fits = graph.value(other).constant && (type.shape == Shape{columns} || one) &&
                    graph.type(node.outputs[0]) == graph.type(projection.result);
  if (!fits) return ir::kNoValue;
  projection.result = node.outputs[0];
  return other;
}

bool multiplies_codes(const Graph& graph, const Projection& projection) {
  return bits_of(graph.type(projection.weights).dtype) < 16;
}

// With what follows right behind the MatMul: of codes a scale, then a bias.
Projection with_ends(const Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  Projection found{id, node.inputs[1], ir::kNoValue, ir::kNoValue, node.outputs[0]};
  if (multiplies_codes(graph, found)) found.scale = take(graph, ScalarFn::kMul, found);
  found.bias = take(graph, ScalarFn::kAdd, found);
  return found;
}

// Projections of one input that can be joined: same layout, constant weights of their own.
std::vector<Projection> candidates(const Graph& graph, ValueId input) {
  std::map<std::array<bool, 3>, std::vector<Projection>> groups;  // by layout, scale and bias
  std::vector<NodeId> users;
  for (const ir::Use& use : graph.value(input).uses) {
    if (use.slot == 0) users.push_back(use.node);
  }
  std::sort(users.begin(), users.end());
  for (NodeId id : users) {
    const auto* matmul = std::get_if<ir::MatMul>(&graph.node(id).op);
    if (!matmul || matmul->transpose_a) continue;
    const ValueId weights = graph.node(id).inputs[1];
    if (!graph.value(weights).constant || graph.type(weights).rank() != 2) continue;
    if (!ir::used_once(graph, weights)) continue;
    const Projection projection = with_ends(graph, id);
    if (!readers_take_slices(graph, projection.result)) continue;
    groups[{matmul->transpose_b, projection.scaled(), projection.biased()}].push_back(projection);
  }
  for (auto& [key, group] : groups) {
    if (group.size() >= 2) return group;
  }
  return {};
}

// The scale as one number a column.
Result<ValueId> scale_of_columns(Graph& graph, const Projection& projection) {
  const TensorType row{graph.type(projection.scale).dtype,
                       {graph.type(projection.result).shape.back()}};
  const auto number = clean::splat_of(graph, projection.scale);
  if (graph.type(projection.scale) == row || !number) return projection.scale;
  const std::vector<double> numbers(static_cast<size_t>(row.elements()), *number);
  return clean::add_doubles(graph, "", row, numbers);
}

// Columns of the joined result, under the name of the projection that they are.
Result<ValueId> sliced_columns(Graph& graph, const Projection& projection, ValueId value,
                               int64_t start, int64_t count) {
  ir::Slice slice;
  slice.sizes = graph.type(value).shape;
  slice.starts.assign(slice.sizes.size(), 0);
  slice.steps.assign(slice.sizes.size(), 1);
  slice.starts.back() = start;
  slice.sizes.back() = count;
  const NodeId maker = graph.value(projection.result).producer;
  const std::string name = graph.node(maker).name;
  KILN_ASSIGN_OR_RETURN(const NodeId id,
                        graph.add_node(name, graph.node(maker).origins, std::move(slice), {value}));
  return graph.result(id);
}

std::vector<std::string> joined_origins(const Graph& graph, const std::vector<Projection>& group) {
  std::vector<std::string> origins;
  for (const Projection& projection : group) {
    for (NodeId id : {projection.matmul, graph.value(projection.result).producer}) {
      for (const std::string& origin : graph.node(id).origins) {
        if (std::find(origins.begin(), origins.end(), origin) == origins.end()) {
          origins.push_back(origin);
        }
      }
    }
  }
  return origins;
}

Result<> join(Graph& graph, ValueId input, const std::vector<Projection>& group) {
  Site site(graph, group.front().matmul);
  const ir::MatMul op = *site.op<ir::MatMul>();
  std::vector<ValueId> weights, scales, biases;
  for (const Projection& projection : group) {
    weights.push_back(projection.weights);
    if (projection.scaled()) {
      KILN_ASSIGN_OR_RETURN(const ValueId scale, scale_of_columns(graph, projection));
      scales.push_back(scale);
    }
    if (projection.biased()) biases.push_back(projection.bias);
  }
  // The concatenations fold below.
  KILN_ASSIGN_OR_RETURN(const ValueId wide_weights,
                        site.emit(ir::Concat{op.transpose_b ? 0 : 1}, std::move(weights)));
  const std::string name = site.node().name;
  KILN_ASSIGN_OR_RETURN(const NodeId product, graph.add_node(name, joined_origins(graph, group), op,
                                                             {input, wide_weights}));
  ValueId wide = graph.result(product);
  if (!scales.empty()) {
    KILN_ASSIGN_OR_RETURN(const ValueId scale, site.emit(ir::Concat{0}, std::move(scales)));
    KILN_ASSIGN_OR_RETURN(wide, site.emit(ir::Pointwise{ScalarFn::kMul}, {wide, scale}));
  }
  if (!biases.empty()) {
    KILN_ASSIGN_OR_RETURN(const ValueId bias, site.emit(ir::Concat{0}, std::move(biases)));
    KILN_ASSIGN_OR_RETURN(wide, site.emit(ir::Pointwise{ScalarFn::kAdd}, {wide, bias}));
  }
  int64_t start = 0;
  for (const Projection& projection : group) {
    const int64_t columns = graph.type(projection.result).shape.back();
    KILN_ASSIGN_OR_RETURN(const ValueId part,
                          sliced_columns(graph, projection, wide, start, columns));
    graph.replace_uses(projection.result, part);
    start += columns;
  }
  for (const Projection& projection : group) {
    clean::erase_with_producers(graph, graph.value(projection.result).producer);
  }
  return Ok();
}

}  // namespace

Result<bool> fuse_parallel_projections(Graph& graph, PassContext& context) {
  bool changed = false;
  const size_t values = graph.value_count();
  for (uint32_t i = 0; i < values; ++i) {
    const ValueId input{i};
    for (auto group = candidates(graph, input); !group.empty(); group = candidates(graph, input)) {
      KILN_RETURN_IF_ERROR(join(graph, input, group));
      changed = true;
    }
  }
  if (changed) KILN_RETURN_IF_ERROR(clean::fold_constants(graph, context));
  return changed;
}

}  // namespace kiln::fuse
