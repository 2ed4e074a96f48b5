#include "builder/verify/random_inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>

namespace kiln {
namespace {

using ir::Graph;
using ir::ValueId;

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

bool passes_values_on(const ir::Op& op) {
  return std::holds_alternative<ir::Cast>(op) || std::holds_alternative<ir::Reshape>(op) ||
         std::holds_alternative<ir::Transpose>(op) || std::holds_alternative<ir::Slice>(op) ||
         std::holds_alternative<ir::Broadcast>(op) || std::holds_alternative<ir::Concat>(op) ||
         std::holds_alternative<ir::Pad>(op) || std::holds_alternative<ir::Gather>(op);
}

// The smallest extent that the value, passed on unchanged, indexes.
int64_t smallest_bound(const Graph& graph, ValueId value, std::set<ValueId>& seen) {
  if (!seen.insert(value).second) return kUnbounded;
  int64_t bound = kUnbounded;
  for (const ir::Use& use : graph.value(value).uses) {
    const ir::Node& node = graph.node(use.node);
    const auto* gather = std::get_if<ir::Gather>(&node.op);
    if (gather && use.slot == 1) {
      const Shape& shape = graph.type(node.inputs[0]).shape;
      bound = std::min(bound, shape[static_cast<size_t>(gather->axis)]);
    } else if (const auto* region = std::get_if<ir::Region>(&node.op)) {
      std::set<ValueId> inside;
      bound =
          std::min(bound, smallest_bound(*region->body, region->body->inputs()[use.slot], inside));
    }
    if (!passes_values_on(node.op) || (gather && use.slot == 1)) continue;
    bound = std::min(bound, smallest_bound(graph, node.outputs[0], seen));
  }
  return bound;
}

template <class T>
HostTensor tensor_of(const TensorType& type, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {type, SharedBytes::take(std::move(bytes))};
}

// Through the reference's cast, so that every dtype is covered once.
HostTensor converted(HostTensor tensor, DType dtype) {
  if (tensor.type.dtype == dtype) return tensor;
  const TensorType type{dtype, tensor.type.shape};
  auto cast = run_reference_op(ir::Cast{dtype}, std::span(&tensor, 1), std::span(&type, 1));
  if (cast.ok()) return std::move(cast->front());
  return {type, SharedBytes::take(std::vector<std::byte>(static_cast<size_t>(type.bytes())))};
}

HostTensor random_tensor(const TensorType& type, int64_t bound, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(type.elements());
  if (is_float(type.dtype)) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return converted(tensor_of({DType::kF32, type.shape}, values), type.dtype);
  }
  std::uniform_int_distribution<int64_t> uniform(0, std::max<int64_t>(bound, 1) - 1);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = uniform(random);
  return converted(tensor_of({DType::kI64, type.shape}, values), type.dtype);
}

}  // namespace

int64_t index_bound(const Graph& graph, ValueId input) {
  std::set<ValueId> seen;
  const int64_t bound = smallest_bound(graph, input, seen);
  return bound == kUnbounded ? 2 : bound;
}

std::vector<HostTensor> random_inputs(const Graph& graph, uint64_t seed,
                                      std::span<const std::optional<HostTensor>> known) {
  std::vector<HostTensor> tensors;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (i < known.size() && known[i]) {
      tensors.push_back(*known[i]);
      continue;
    }
    std::mt19937_64 random(seed * 1000003 + i);
    const ValueId input = graph.inputs()[i];
    const TensorType& type = graph.type(input);
    const int64_t bound = is_integer(type.dtype) ? index_bound(graph, input) : 2;
    tensors.push_back(random_tensor(type, bound, random));
  }
  return tensors;
}

}  // namespace kiln
