#include "builder/verify/random_inputs.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "builder/verify/index_bounds.h"

namespace kiln {
namespace {

using ir::Graph;

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

// Normal floats, or whole numbers in [0, bound).
HostTensor random_tensor(const TensorType& type, std::optional<int64_t> bound,
                         std::mt19937_64& random) {
  const auto count = static_cast<size_t>(type.elements());
  if (is_float(type.dtype) && !bound) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return converted(tensor_of({DType::kF32, type.shape}, values), type.dtype);
  }
  const int digits =
      is_float(type.dtype) ? 62 : bits_of(type.dtype) - is_signed_integer(type.dtype);
  const int64_t most = type.dtype == DType::kBool ? 2 : int64_t{1} << std::min(digits, 62);
  std::uniform_int_distribution<int64_t> uniform(0, std::min(bound.value_or(2), most) - 1);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = uniform(random);
  return converted(tensor_of({DType::kI64, type.shape}, values), type.dtype);
}

}  // namespace

std::vector<HostTensor> random_inputs(const Graph& graph, uint64_t seed,
                                      std::span<const std::optional<HostTensor>> known) {
  const auto bounds = index_bounds(graph);
  std::vector<HostTensor> tensors;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (i < known.size() && known[i]) {
      tensors.push_back(*known[i]);
      continue;
    }
    std::mt19937_64 random(seed * 1000003 + i);
    tensors.push_back(random_tensor(graph.type(graph.inputs()[i]), bounds[i], random));
  }
  return tensors;
}

}  // namespace kiln
