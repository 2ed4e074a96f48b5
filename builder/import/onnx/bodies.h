// What the operators over bodies (If, Loop, Scan) have in common.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "builder/import/onnx/importer.h"

namespace kiln::onnx_import {

// Rounds are unrolled while this many nodes hold them.
inline constexpr int64_t kMaxUnrolledNodes = 20000;

bool truth(const HostTensor& tensor);
// nullopt: not known while importing, or not one element.
std::optional<bool> known_bool(NodeContext& c, ValueId value);
// Records the inputs that would have to be fixed to decide this node while building.
void need_inputs_behind(NodeContext& c, std::span<const ValueId> values);

// The outer values that a body read, in the order of the inputs that they became.
std::vector<ValueId> outer_values(const Scope& scope);
std::vector<Binding> tensors(const std::vector<ValueId>& values);

Bindings import_if(NodeContext& c, std::span<const Binding> inputs);
Bindings import_loop(NodeContext& c, std::span<const Binding> inputs);
Bindings import_scan(NodeContext& c, std::span<const Binding> inputs);

}  // namespace kiln::onnx_import
