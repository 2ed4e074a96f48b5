// ONNX model + shape point -> ir::Graph. Every extent becomes a number, shape arithmetic
// disappears, older operator sets and composite operators are normalised: passes see the closed set
// of ir/op.h.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "builder/builder.h"
#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "engine/plugin_library.h"
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx_import {

struct ImportOptions {
  std::span<const Plugin> plugins;  // for nodes of custom domains
};

struct Imported {
  ir::Graph graph;
  std::vector<std::string> notes;
};

struct NodeProblem {
  std::string node, op_type;
  Error error;
};

// Errors name the model's file and every node that cannot be imported, with the reason for each.
// Inputs of the graph are the model's, in order, but for those that have an initializer.
Result<Imported> import_onnx(const onnx::Model& model, const ShapePoint& point,
                             const ImportOptions& options = {});

struct ImportCheck {
  std::vector<UnsupportedNode> unsupported;  // empty: the model can be imported
  // Graph inputs whose values shapes depend on and that the shape point does not fix.
  std::vector<std::string> needed_values;
};
// Fails only for what concerns no node (inputs, versions).
Result<ImportCheck> check_onnx(const onnx::Model& model, const ShapePoint& point,
                               const ImportOptions& options = {});

}  // namespace kiln::onnx_import
