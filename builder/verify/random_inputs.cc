#include "builder/verify/random_inputs.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "builder/verify/in_pieces.h"
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

// The same for any number of threads.
std::vector<float> random_normals(size_t count, uint64_t seed) {
  constexpr size_t kTogether = 1 << 16;  // from one generator
  std::vector<float> values(count);
  const size_t runs = (count + kTogether - 1) / kTogether;
  const int64_t pieces = pieces_of(static_cast<int64_t>(count));
  in_pieces(pieces, [&](int64_t piece) {
    const auto at = static_cast<size_t>(piece), all = static_cast<size_t>(pieces);
    for (size_t run = runs * at / all; run < runs * (at + 1) / all; ++run) {
      std::mt19937_64 random(seed + run * 0x9E3779B97F4A7C15u);
      std::normal_distribution<float> normal;
      const size_t end = std::min(count, (run + 1) * kTogether);
      for (size_t i = run * kTogether; i < end; ++i) values[i] = normal(random);
    }
  });
  return values;
}

// Normal floats, or whole numbers in [0, bound).
HostTensor random_tensor(const TensorType& type, std::optional<int64_t> bound, uint64_t seed) {
  const auto count = static_cast<size_t>(type.elements());
  if (is_float(type.dtype) && !bound) {
    return converted(tensor_of({DType::kF32, type.shape}, random_normals(count, seed)), type.dtype);
  }
  std::mt19937_64 random(seed);
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
    tensors.push_back(random_tensor(graph.type(graph.inputs()[i]), bounds[i], seed * 1000003 + i));
  }
  return tensors;
}

}  // namespace kiln
