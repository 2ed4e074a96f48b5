// Constants: evaluates values that depend on nothing but constants, with the host's kernels.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/verify/reference.h"

namespace kiln::onnx_import {

class Constants {
 public:
  // The value's bytes, or nullopt if it depends on an input or cannot be computed.
  std::optional<HostTensor> find(const ir::Graph& graph, ir::ValueId value);
  // Names of the graph inputs that the value depends on.
  static std::vector<std::string> inputs_behind(const ir::Graph& graph, ir::ValueId value);

 private:
  std::map<std::pair<const ir::Graph*, ir::ValueId>, HostTensor> known_;
};

// Elements of an integer or bool tensor, or of any numeric tensor.
std::vector<int64_t> to_ints(const HostTensor& tensor);
std::vector<double> to_doubles(const HostTensor& tensor);

}  // namespace kiln::onnx_import
