#include "builder/tactics/cuda/cublaslt_problem.h"

#include <algorithm>
#include <limits>
#include <string>

namespace kiln {
namespace {

using cuda::MatmulProblem;
using Compute = MatmulProblem::Compute;

constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

struct BatchAxis {
  int64_t extent;
  int64_t a, b, d;  // strides
};

// Strides, in elements, of the leading axes of `type` under the result's; 0 where it is broadcast.
std::vector<int64_t> leading_strides(const TensorType& type, size_t axes) {
  std::vector<int64_t> strides(axes, 0);
  const Shape dense = row_major_strides(type.shape);
  const size_t own = type.shape.size() - 2;
  for (size_t i = 0; i < own; ++i) {
    if (type.shape[i] != 1) strides[axes - own + i] = dense[i];
  }
  return strides;
}

// From outer to inner, extents of 1 left out.
std::vector<BatchAxis> batch_axes(const MatmulRequest& request) {
  const size_t count = request.result.shape.size() - 2;
  const auto a = leading_strides(request.a, count), b = leading_strides(request.b, count);
  const auto d = leading_strides(request.result, count);
  std::vector<BatchAxis> axes;
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = request.result.shape[i];
    if (extent != 1) axes.push_back({extent, a[i], b[i], d[i]});
  }
  return axes;
}

// Matrices that follow each other in a and d and share one b are rows of one.
void merge_into_rows(MatmulProblem& p, std::vector<BatchAxis>& axes) {
  while (!axes.empty() && !p.a.transposed) {
    const BatchAxis& axis = axes.back();
    if (axis.b != 0 || axis.a != p.m * p.a.leading || axis.d != p.m * p.d.leading) return;
    if (axis.extent > kMostExtent / p.m) return;
    p.m *= axis.extent;
    axes.pop_back();
  }
}

void merge_neighbours(std::vector<BatchAxis>& axes) {
  for (size_t i = axes.size(); i-- > 1;) {
    BatchAxis& outer = axes[i - 1];
    const BatchAxis& inner = axes[i];
    if (outer.a != inner.a * inner.extent || outer.b != inner.b * inner.extent ||
        outer.d != inner.d * inner.extent || outer.extent > kMostExtent / inner.extent) {
      continue;
    }
    outer = {outer.extent * inner.extent, inner.a, inner.b, inner.d};
    axes.erase(axes.begin() + static_cast<ptrdiff_t>(i));
  }
}

void set_batch(MatmulProblem& p, std::vector<BatchAxis> axes) {
  // The longest is cuBLASLt's own; each step of the others costs a call.
  const auto longest =
      std::max_element(axes.begin(), axes.end(),
                       [](const BatchAxis& x, const BatchAxis& y) { return x.extent < y.extent; });
  if (longest != axes.end()) std::rotate(longest, longest + 1, axes.end());
  for (const BatchAxis& axis : axes) {
    p.batch.push_back(axis.extent);
    p.a.batch_strides.push_back(axis.a);
    p.b.batch_strides.push_back(axis.b);
    p.d.batch_strides.push_back(axis.d);
  }
}

Result<Compute> compute_of(const MatmulRequest& request) {
  const DType operand = request.a.dtype, result = request.result.dtype;
  if (operand == DType::kF32 && result == operand) {
    return request.allow_tf32 ? Compute::kTf32 : Compute::kF32;
  }
  if (operand == DType::kF64 && result == operand) return Compute::kF64;
  const bool codes = operand == DType::kF8E4M3FN;
  if (codes && (result == operand || result == DType::kF32 || result == DType::kF16 ||
                result == DType::kBF16)) {
    return Compute::kF32;
  }
  const bool half = operand == DType::kF16 || operand == DType::kBF16;
  if (half && (result == operand || result == DType::kF32)) return Compute::kF32;
  return refuse("cuBLASLt has no matmul of " + std::string(to_string(operand)) + " to " +
                std::string(to_string(result)));
}

}  // namespace

Result<MatmulProblem> matmul_problem(const MatmulRequest& request) {
  MatmulProblem p;
  KILN_ASSIGN_OR_RETURN(p.compute, compute_of(request));
  p.operand_dtype = request.a.dtype;
  p.result_dtype = request.result.dtype;
  const Shape &a = request.a.shape, &result = request.result.shape;
  p.m = result[result.size() - 2];
  p.n = result.back();
  p.k = a[a.size() - (request.op.transpose_a ? 2 : 1)];
  if (request.result.elements() == 0 || p.k == 0) return refuse("an extent is 0");
  if (std::max({p.m, p.n, p.k}) > kMostExtent) return refuse("an extent is above 2^31");
  // One row is one column: not transposed, so that more batches can become rows.
  p.a.transposed = request.op.transpose_a && p.m > 1;
  p.a.leading = p.a.transposed ? p.m : p.k;
  p.b.transposed = request.op.transpose_b;
  p.b.leading = p.b.transposed ? p.k : p.n;
  p.d.leading = p.n;
  auto axes = batch_axes(request);
  merge_into_rows(p, axes);
  merge_neighbours(axes);
  set_batch(p, std::move(axes));
  std::vector<TensorType> inputs = {request.a, request.b};
  if (cuda::quantises(p)) inputs.push_back({DType::kF32, {}});
  auto fits = cuda::check(p, inputs, {&request.result, 1});
  if (!fits.ok()) return refuse(fits.error().message);  // too many calls or batch axes
  return p;
}

}  // namespace kiln
