// Importer: one import of one model at one shape point. Private to this folder; import.h is the
// door.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "builder/import/onnx/import.h"
#include "builder/import/onnx/node_context.h"
#include "builder/import/onnx/scope.h"
#include "formats/onnx/model.h"

namespace kiln::onnx_import {

using Bindings = Result<std::vector<Binding>>;

// What a node goes by: its name, else its first output's, else its operator.
std::string label(const onnx::Node& node);

class Importer {
 public:
  Importer(const onnx::Model& model, const ShapePoint& point, const ImportOptions& options);

  // Imports the main graph as far as it goes; problems() tells what could not be imported.
  // Fails on what concerns no node: inputs, outputs, versions.
  Result<> run();

  ir::Graph& graph() { return graph_; }
  std::vector<std::string>& notes() { return notes_; }
  const std::vector<NodeProblem>& problems() const { return problems_; }
  Constants& constants() { return constants_; }
  std::map<std::pair<const ir::Graph*, ValueId>, ValueId>& wide_values() { return wide_values_; }
  const std::vector<std::string>& needed_values() const { return needed_values_; }
  // Records the main graph's inputs among `names`, which are names of the scope's graph.
  void need_values(const Scope& scope, const std::vector<std::string>& names);

  // A body that takes `arguments` and is spliced into the scope's graph (a constant If, an unrolled
  // Loop); returns its outputs.
  Bindings inline_body(const onnx::Graph& body, Scope& scope, std::span<const Binding> arguments);
  // A body imported into a graph of its own; `inner` must have that graph, parent and opsets set,
  // and bindings for the body's inputs. Marks the outputs.
  Result<> import_body(const onnx::Graph& body, Scope& inner);

 private:
  Result<> bind_inputs(Scope& scope);
  Result<> bind_outputs(Scope& scope);
  Result<> bind_initializers(const onnx::Graph& graph, Scope& scope);
  void import_main_nodes(Scope& scope);
  Result<> import_nodes(std::span<const onnx::Node> nodes, Scope& scope);
  Result<> import_node(const onnx::Node& node, Scope& scope);
  // dispatch.cc
  Bindings dispatch(const onnx::Node& node, Scope& scope, std::vector<Binding>& inputs);
  Bindings run_handler(const onnx::Node& node, int64_t opset, Scope& scope,
                       std::vector<Binding>& inputs);
  const onnx::Function* find_function(const onnx::Node& node) const;
  Result<> check_known(const onnx::Node& node, const Scope& scope) const;
  Error unknown_operator(const onnx::Node& node, int64_t opset) const;
  Result<int64_t> opset_of(const onnx::Node& node, const Scope& scope) const;
  // inlining.cc, as inline_body and import_body
  Bindings call_function(const onnx::Function& function, const onnx::Node& call, Scope& scope,
                         std::vector<Binding>& inputs);

  const onnx::Model& model_;
  const ShapePoint& point_;
  const ImportOptions& options_;
  ir::Graph graph_;
  Constants constants_;
  std::vector<std::string> notes_;
  std::vector<NodeProblem> problems_;
  std::vector<std::string> needed_values_;
  std::map<std::pair<const ir::Graph*, ValueId>, ValueId> wide_values_;  // see wide_values.h
};

// Handlers of operators whose inputs or outputs may be other things than tensors.
using BindingFn = Bindings (*)(NodeContext&, std::span<const Binding> inputs);
struct BindingHandler {
  std::string_view op_type;
  BindingFn import;
};
std::span<const BindingHandler> control_flow_handlers();
std::span<const BindingHandler> sequence_handlers();
const BindingHandler* find_binding_handler(std::string_view domain, std::string_view op_type);

}  // namespace kiln::onnx_import
