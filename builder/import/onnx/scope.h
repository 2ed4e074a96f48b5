// Scope: what the names of one ONNX graph or function body stand for while it is imported.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "builder/import/onnx/constants.h"
#include "builder/ir/graph.h"

namespace kiln::onnx {
struct Attribute;
}

namespace kiln::onnx_import {

// What one name stands for. Sequences and optionals exist only while importing: their lengths and
// contents are resolved before the graph is built.
struct Binding {
  enum class Kind : uint8_t {
    kTensor,
    kSequence,  // `elements`
    kNone,      // an optional without a value
    kUnknown,   // its node could not be imported
  };
  Kind kind = Kind::kUnknown;
  ir::ValueId value{UINT32_MAX};
  std::shared_ptr<const std::vector<Binding>> elements;

  static Binding tensor(ir::ValueId value) { return {Kind::kTensor, value, nullptr}; }
  static Binding sequence(std::vector<Binding> elements) {
    return {Kind::kSequence, ir::ValueId{UINT32_MAX},
            std::make_shared<const std::vector<Binding>>(std::move(elements))};
  }
  static Binding none() { return {Kind::kNone, ir::ValueId{UINT32_MAX}, nullptr}; }
};

// A value of the enclosing graph that a body reads: it becomes an input of the body.
struct Capture {
  ir::ValueId outer, inner;
};

struct Scope {
  ir::Graph* graph = nullptr;
  Scope* parent = nullptr;  // whose names are visible here; null for the main graph and functions
  Scope* caller = nullptr;  // of a function: the scope of its call
  std::map<std::string, Binding> names;
  std::vector<Capture> captures;  // when `graph` is not the parent's
  // Attributes of the function call that this scope is the body of; null outside of functions.
  const std::map<std::string, onnx::Attribute>* attributes = nullptr;
  const std::map<std::string, int64_t>* opsets = nullptr;
  std::string prefix;  // of node and value names: the function calls around
  std::string origin;  // the model's node that this comes from; empty: each node is its own
  int depth = 0;       // of function calls and bodies
};

// The scope of a body (of If, Loop, Scan) inside `outer`, imported into `graph`: the outer one, or
// one of its own.
Scope body_scope(Scope& outer, ir::Graph& graph);

// Looks a name up here and outwards. A tensor of an outer graph becomes an input of this scope's
// graph, or a constant where its value is known and small. nullopt: no such name.
std::optional<Binding> find_name(Scope& scope, const std::string& name, Constants& constants);

}  // namespace kiln::onnx_import
