#include "builder/tactics/split_anchor.h"

#include <algorithm>
#include <set>

#include "builder/codegen/lower_loop.h"

namespace kiln {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

// The nodes that the values need when the anchor's result is given.
std::vector<NodeId> nodes_behind(const Graph& body, std::span<const ValueId> values,
                                 NodeId anchor) {
  std::set<NodeId> found;
  std::vector<ValueId> open(values.begin(), values.end());
  while (!open.empty()) {
    const NodeId producer = body.value(open.back()).producer;
    open.pop_back();
    if (producer == ir::kNoNode || producer == anchor || !found.insert(producer).second) continue;
    const auto& inputs = body.node(producer).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return {found.begin(), found.end()};
}

Result<ValueId> emit(Graph& graph, ir::Op op, std::vector<ValueId> inputs) {
  KILN_ASSIGN_OR_RETURN(const NodeId id,
                        graph.add_node("anchor", {}, std::move(op), std::move(inputs)));
  return graph.result(id);
}

// Builds the rest as a graph: the stored result in the body's order of axes, the bias that the call
// left out, then the nodes.
class Rest {
 public:
  Rest(const Graph& body, const EpilogueChain& chain) : body_(body), chain_(chain) {}

  Result<SplitRest> build(const ir::Extracted& nodes) {
    const ValueId result = body_.result(chain_.anchor);
    std::vector<ValueId> arguments;
    for (ValueId input : nodes.inputs) {
      KILN_ASSIGN_OR_RETURN(const ValueId argument,
                            input == result ? anchor_result() : Result<ValueId>(take(input)));
      arguments.push_back(argument);
    }
    for (ValueId output : ir::inline_graph(graph_, nodes.graph, arguments)) {
      graph_.mark_output(output);
    }
    KILN_ASSIGN_OR_RETURN(rest_.kernel, lower_to_loop(graph_));
    return std::move(rest_);
  }

 private:
  ValueId take(ValueId input) {
    const auto known = std::find(rest_.inputs.begin(), rest_.inputs.end(), input);
    if (known != rest_.inputs.end()) {
      return graph_.inputs()[static_cast<size_t>(known - rest_.inputs.begin())];
    }
    rest_.inputs.push_back(input);
    return graph_.add_input("", body_.type(input));
  }

  // The nodes behind a value that does not need the anchor.
  ValueId computed(ValueId value) {
    if (body_.value(value).producer == ir::kNoNode) return take(value);
    const auto nodes = nodes_behind(body_, std::span(&value, 1), ir::kNoNode);
    const ir::Extracted part = ir::extract(body_, nodes, std::span(&value, 1));
    std::vector<ValueId> arguments;
    for (ValueId input : part.inputs) arguments.push_back(take(input));
    return ir::inline_graph(graph_, part.graph, arguments)[0];
  }

  Result<ValueId> anchor_result() {
    const TensorType& type = body_.type(body_.result(chain_.anchor));
    rest_.anchor_result = type;
    if (chain_.channels_last) {
      Shape& shape = rest_.anchor_result.shape;
      std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    }
    rest_.anchor_input = rest_.inputs.size();
    rest_.inputs.push_back(body_.result(chain_.anchor));
    ValueId value = graph_.add_input("", rest_.anchor_result);
    if (chain_.channels_last) {
      KILN_ASSIGN_OR_RETURN(value,
                            emit(graph_, ir::Transpose{channels_second(type.rank())}, {value}));
    }
    const auto& operands = body_.node(chain_.anchor).inputs;
    return operands.size() == 3 && chain_.steps.empty() ? add_bias(value, operands[2])
                                                        : Result<ValueId>(value);
  }

  Result<ValueId> add_bias(ValueId value, ValueId bias) {
    Shape shape(graph_.type(value).shape.size() - 1, 1);
    shape[0] = body_.type(bias).shape[0];
    KILN_ASSIGN_OR_RETURN(const ValueId wide, emit(graph_, ir::Reshape{shape}, {computed(bias)}));
    return emit(graph_, ir::Pointwise{ScalarFn::kAdd}, {value, wide});
  }

  const Graph& body_;
  const EpilogueChain& chain_;
  Graph graph_;
  SplitRest rest_;
};

}  // namespace

Result<SplitRest> split_rest(const Graph& body, const EpilogueChain& chain) {
  const auto nodes = nodes_behind(body, body.outputs(), chain.anchor);
  const bool leaves_bias = body.node(chain.anchor).inputs.size() == 3 && chain.steps.empty();
  if (nodes.empty() && !leaves_bias) {
    return Error{ErrorCode::kUnsupported, "nothing follows the anchor"};
  }
  return Rest(body, chain).build(ir::extract(body, nodes, body.outputs()));
}

}  // namespace kiln
