#include <algorithm>
#include <cstring>
#include <span>

#include "formats/onnx/decode_tensor.h"

namespace kiln::onnx {
namespace {

// A dense form may be this large whatever is stored, or this many times what is stored.
constexpr int64_t kDenseBytesAlways = int64_t{16} << 20;
constexpr int64_t kDenseGrowth = 256;

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

Result<TensorType> dense_type(const ::onnx::SparseTensorProto& proto, const Tensor& values) {
  TensorType type{values.type.dtype, Shape(proto.dims().begin(), proto.dims().end())};
  const auto count = checked_element_count(type.shape);
  if (!count || type.shape.empty()) {
    return corrupt("has dims " + to_string(type.shape) +
                   ", expected at least one, none negative, and a product below 2^62");
  }
  if (bits_of(type.dtype) < 8) {
    return Error{ErrorCode::kUnsupported, "is sparse and " + std::string(to_string(type.dtype)) +
                                              ", expected a type of whole bytes"};
  }
  const int64_t width = bits_of(type.dtype) / 8;
  const int64_t stored = std::max<int64_t>(values.type.bytes(), 1);
  const int64_t limit = std::max(kDenseBytesAlways / width, stored * kDenseGrowth / width);
  if (*count > limit) {
    return Error{ErrorCode::kUnsupported, "is sparse with " + std::to_string(*count) +
                                              " elements in dense form, " +
                                              std::to_string(values.type.elements()) +
                                              " stored; expected at most " + std::to_string(limit)};
  }
  return type;
}

// The dense positions of the stored values: indices are positions, [nnz], or coordinates,
// [nnz, rank]; in both cases they must lie inside and rise.
Result<std::vector<int64_t>> dense_positions(const Tensor& indices, const TensorType& dense,
                                             int64_t stored) {
  const bool flat = indices.type.rank() == 1;
  const Shape expected = flat ? Shape{stored} : Shape{stored, dense.rank()};
  if (indices.type != TensorType{DType::kI64, expected}) {
    return corrupt("has indices of type " + to_string(indices.type) + ", expected " +
                   to_string(TensorType{DType::kI64, {stored}}) + " or " +
                   to_string(TensorType{DType::kI64, {stored, dense.rank()}}));
  }
  const Shape extents = flat ? Shape{dense.elements()} : dense.shape;
  const int64_t* index = indices.as<int64_t>();
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < stored; ++i) {
    int64_t position = 0;
    for (int64_t extent : extents) {
      if (*index < 0 || *index >= extent) {
        return corrupt("has index " + std::to_string(*index) + " in a dimension of " +
                       std::to_string(extent));
      }
      position = position * extent + *index++;
    }
    if (!positions.empty() && position <= positions.back()) {
      return corrupt("has indices that do not rise, at value " + std::to_string(i));
    }
    positions.push_back(position);
  }
  return positions;
}

}  // namespace

Result<Tensor> decode_sparse_tensor(::onnx::SparseTensorProto& proto, ExternalData& external) {
  auto values = decode_tensor(*proto.mutable_values(), external);
  if (!values.ok()) return std::move(values).error().context("values");
  if (values->type.rank() != 1) {
    return corrupt("has values of type " + to_string(values->type) + ", expected rank 1");
  }
  auto indices = decode_tensor(*proto.mutable_indices(), external);
  if (!indices.ok()) return std::move(indices).error().context("indices");
  KILN_ASSIGN_OR_RETURN(TensorType type, dense_type(proto, *values));
  KILN_ASSIGN_OR_RETURN(const auto positions,
                        dense_positions(*indices, type, values->type.elements()));
  std::vector<std::byte> dense(static_cast<size_t>(type.bytes()));
  const auto width = static_cast<size_t>(bits_of(type.dtype) / 8);
  for (size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(dense.data() + static_cast<size_t>(positions[i]) * width,
                values->data.data() + i * width, width);
  }
  return Tensor{std::move(values->name), std::move(type), SharedBytes::take(std::move(dense))};
}

}  // namespace kiln::onnx
