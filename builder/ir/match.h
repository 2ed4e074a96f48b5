// Small questions about a graph that pattern matching asks all the time.
#pragma once
#include <variant>

#include "builder/ir/graph.h"

namespace kiln::ir {

inline constexpr ValueId kNoValue{UINT32_MAX};

// The op of the node that makes `value`, if it is a T; else null.
template <class T>
const T* producer_as(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return producer == kNoNode ? nullptr : std::get_if<T>(&graph.node(producer).op);
}

inline bool made_by(const Graph& graph, ValueId value, ScalarFn fn) {
  const auto* op = producer_as<Pointwise>(graph, value);
  return op && op->fn == fn;
}

inline bool made_by(const Graph& graph, ValueId value, ReduceFn fn) {
  const auto* op = producer_as<Reduce>(graph, value);
  return op && op->fn == fn;
}

// Input i of the node that makes `value`. REQUIRES: a node makes it.
inline ValueId operand(const Graph& graph, ValueId value, size_t i) {
  return graph.node(graph.value(value).producer).inputs[i];
}

// One node reads it, in one slot, and no caller does.
inline bool used_once(const Graph& graph, ValueId value) {
  return graph.value(value).uses.size() == 1 && !graph.is_output(value);
}

// Neither read by a node nor an output.
inline bool unused(const Graph& graph, ValueId value) {
  return graph.value(value).uses.empty() && !graph.is_output(value);
}

}  // namespace kiln::ir
