// Which dtype each f32 value of a graph of regions is stored in, and why not in the narrow one.
#pragma once
#include <string>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln::precision {

struct StorageWish {
  DType narrow = DType::kF32;  // kF32: nothing becomes narrow but for input and output
  DType io = DType::kF32;      // what f32 inputs and outputs of the graph become
  // By node: why it must stay f32, "" where it need not. Empty: none must.
  std::vector<std::string> keep = {};
};

struct Storage {
  std::vector<DType> values;         // by value; the value's own dtype where that is not f32
  std::vector<bool> narrow_anchor;   // by node: its contraction reads narrow operands
  std::vector<std::string> reasons;  // by node: why its results stay f32; "" if they do not
};

// REQUIRES: every node is a Region.
Storage choose_storage(const ir::Graph& graph, const StorageWish& wish);

// Whether the region computes or stores anything narrow.
bool is_narrowed(const ir::Graph& graph, const Storage& storage, ir::NodeId node, DType narrow);

// Whether f16 cannot hold a finite element of an f32 constant.
bool exceeds_f16(const ir::Graph& graph, ir::ValueId constant);

// The largest finite number of f16; bf16 and f32 have one range.
inline constexpr double kMaxF16 = 65504;

}  // namespace kiln::precision
