// Lowers graphs node by node: one host kernel each, values in temporaries. What the plain provider
// is made of, and what others fall back to for the part of a region that they have no better way
// for.
#pragma once
#include <map>
#include <span>
#include <string>

#include "builder/ir/graph.h"
#include "builder/tactics/lowered.h"

namespace kiln {

// Builds a Lowered while walking a graph. Values are bound to local buffers as they appear.
class NodeLowering {
 public:
  using Bindings = std::map<ir::ValueId, LocalBuffer>;

  // Chooses another kernel for a node ("onednn.matmul" for "matmul"), which takes the same inputs.
  // Null: plain kernels.
  using Rename = Operation (*)(const ir::Node& node, Operation plain);
  explicit NodeLowering(Rename rename = nullptr) : rename_(rename) {}

  // Binds the graph's inputs to the region's inputs, its outputs to the region's outputs, lowers
  // every node. Outputs that are inputs, constants or repeated are copied.
  Result<> lower_region(const ir::Graph& body);

  // Lowers some nodes of `body`, in topological order; what they read must be bound.
  Result<> lower_nodes(const ir::Graph& body, std::span<const ir::NodeId> nodes,
                       Bindings& bindings);

  LocalBuffer buffer_of(const ir::Graph& body, ir::ValueId value, Bindings& bindings);
  LocalBuffer temporary(TensorType type);
  void add(LocalStep step) { lowered_.steps.push_back(std::move(step)); }
  Bindings bind_region(const ir::Graph& body);
  // Copies outputs of the region that no step writes.
  void copy_outputs(const ir::Graph& body, Bindings& bindings);

  Lowered take() && { return std::move(lowered_); }

 private:
  Result<> lower_node(const ir::Graph& body, const ir::Node& node, Bindings& bindings);
  Result<> lower_body(const ir::Graph& body, std::span<const LocalBuffer> arguments,
                      std::span<const LocalBuffer> results);
  Result<> lower_if(const ir::If& op, std::span<const LocalBuffer> inputs,
                    std::span<const LocalBuffer> outputs);
  Result<> lower_loop(const ir::Loop& op, std::span<const LocalBuffer> inputs,
                      std::span<const LocalBuffer> outputs);

  Rename rename_;
  Lowered lowered_;
};

}  // namespace kiln
