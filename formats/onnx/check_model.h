// What the format asks of a decoded model, beyond parsing. Operators' meaning is not judged.
#pragma once
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

// All of the checks below, in an order that lets each rely on those before.
Result<> check_model(const Model& model);

// Names are UTF-8 without control characters.
Result<> check_names(const Model& model);
// IR version and operator sets are known, and every node's domain is imported.
Result<> check_versions(const Model& model);
// In the graph, its subgraphs and the functions' bodies: each name is made once, before its use,
// by a node, input or initializer of its own or an enclosing graph; every output is made.
Result<> check_graphs(const Model& model);
// Functions are unique, refer to their own attributes only, and none calls itself, directly or
// through others; with all calls inlined the model stays within a sane number of nodes.
Result<> check_functions(const Model& model);
// Nodes agree with the schema of their operator where ONNX has one (number of inputs and outputs,
// required attributes, attribute kinds), and with the function that they call.
Result<> check_nodes(const Model& model);

}  // namespace kiln::onnx
