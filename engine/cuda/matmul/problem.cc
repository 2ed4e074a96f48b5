#include "engine/cuda/matmul/problem.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace kiln::cuda {
namespace {

using Compute = MatmulProblem::Compute;

// cuBLASLt's kernels count rows, columns and matrices in 32 bits.
constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();
constexpr size_t kMostBatchAxes = 4;

Error corrupt(std::string why) { return {ErrorCode::kCorruptData, "matmul: " + std::move(why)}; }

Result<> check_range(std::string_view name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return Ok();
  return corrupt(std::string(name) + " is " + std::to_string(value) + ", expected " +
                 std::to_string(low) + " to " + std::to_string(high));
}

// sum + count * stride, or the largest number where that overflows. All are >= 0.
int64_t add_product(int64_t sum, int64_t count, int64_t stride) {
  int64_t product = 0, total = 0;
  if (__builtin_mul_overflow(count, stride, &product) ||
      __builtin_add_overflow(sum, product, &total)) {
    return std::numeric_limits<int64_t>::max();
  }
  return total;
}

// A view must end exactly where its tensor does: a damaged number shows.
Result<> check_view(const MatmulProblem& p, const MatrixView& view, int64_t rows, int64_t columns,
                    const TensorType& type, const std::string& name) {
  if (view.transposed) std::swap(rows, columns);
  KILN_RETURN_IF_ERROR(
      check_range("the leading dimension of " + name, view.leading, columns, type.elements()));
  if (view.batch_strides.size() != p.batch.size()) {
    return corrupt(name + " has " + std::to_string(view.batch_strides.size()) +
                   " batch strides, expected " + std::to_string(p.batch.size()));
  }
  int64_t last = add_product(columns - 1, rows - 1, view.leading);
  for (size_t axis = 0; axis < p.batch.size(); ++axis) {
    const int64_t stride = view.batch_strides[axis];
    KILN_RETURN_IF_ERROR(check_range("a batch stride of " + name, stride, 0, type.elements()));
    last = add_product(last, p.batch[axis] - 1, stride);
  }
  if (last == type.elements() - 1) return Ok();
  return corrupt("the last element of " + name + " is number " + std::to_string(last) + " of " +
                 to_string(type) + ", expected number " + std::to_string(type.elements() - 1));
}

Result<> check_dtypes(const MatmulProblem& p) {
  struct Row {
    DType operand, result;
    Compute compute;
  };
  constexpr std::array kRows = {
      Row{DType::kF32, DType::kF32, Compute::kF32},
      Row{DType::kF32, DType::kF32, Compute::kTf32},
      Row{DType::kF16, DType::kF16, Compute::kF32},
      Row{DType::kF16, DType::kF32, Compute::kF32},
      Row{DType::kBF16, DType::kBF16, Compute::kF32},
      Row{DType::kBF16, DType::kF32, Compute::kF32},
      Row{DType::kF64, DType::kF64, Compute::kF64},
      Row{DType::kF8E4M3FN, DType::kF32, Compute::kF32},
      Row{DType::kF8E4M3FN, DType::kF16, Compute::kF32},
      Row{DType::kF8E4M3FN, DType::kBF16, Compute::kF32},
      Row{DType::kF8E4M3FN, DType::kF8E4M3FN, Compute::kF32},
      Row{DType::kF8E4M3FN, DType::kF8E4M3FN, Compute::kFastF32},
      Row{DType::kF8E4M3FN, DType::kF32, Compute::kFastF32},
      Row{DType::kF8E4M3FN, DType::kF16, Compute::kFastF32},
      Row{DType::kF8E4M3FN, DType::kBF16, Compute::kFastF32},
  };
  for (const Row& row : kRows) {
    if (row.operand == p.operand_dtype && row.result == p.result_dtype &&
        row.compute == p.compute) {
      return Ok();
    }
  }
  return corrupt(std::string(to_string(p.operand_dtype)) + " to " +
                 std::string(to_string(p.result_dtype)) + " computed in " +
                 std::string(to_string(p.compute)) + " is no combination that cuBLASLt has");
}

// What the tensor cores of 8-bit floats ask for: both operands stored along k, in whole pieces of
// 16 bytes. The bias has the result's dtype, but cuBLASLt adds none in f32 to such products.
Result<> check_codes(const MatmulProblem& p) {
  if (bits_of(p.operand_dtype) != 8) return Ok();
  if (p.a.transposed || !p.b.transposed) {
    return corrupt("8-bit operands are not both stored along k, as cuBLASLt wants them");
  }
  if (p.bias && p.result_dtype == DType::kF32) {
    return corrupt("an f32 bias is added to 8-bit operands' product, expected none");
  }
  if (quantises(p) && p.residual) {
    return corrupt("a residual is added to a result of 8-bit codes, expected none");
  }
  constexpr int64_t kPiece = 16;
  const auto check_multiple = [](std::string_view name, int64_t value) -> Result<> {
    if (value % kPiece == 0) return Ok();
    return corrupt(std::string(name) + " is " + std::to_string(value) +
                   ", expected a multiple of 16 for 8-bit operands");
  };
  KILN_RETURN_IF_ERROR(check_multiple("k", p.k));
  KILN_RETURN_IF_ERROR(check_multiple("n", p.n));
  for (const MatrixView* view : {&p.a, &p.b, &p.d}) {
    KILN_RETURN_IF_ERROR(check_multiple("a leading dimension", view->leading));
    for (int64_t stride : view->batch_strides) {
      KILN_RETURN_IF_ERROR(check_multiple("a batch stride", stride));
    }
  }
  return Ok();
}

Result<> check_extents(const MatmulProblem& p) {
  KILN_RETURN_IF_ERROR(check_range("m", p.m, 1, kMostExtent));
  KILN_RETURN_IF_ERROR(check_range("n", p.n, 1, kMostExtent));
  KILN_RETURN_IF_ERROR(check_range("k", p.k, 1, kMostExtent));
  KILN_RETURN_IF_ERROR(check_range("the number of batch axes", static_cast<int64_t>(p.batch.size()),
                                   0, kMostBatchAxes));
  for (int64_t extent : p.batch) {
    KILN_RETURN_IF_ERROR(check_range("a batch extent", extent, 1, kMostExtent));
  }
  return check_range("the number of calls", calls_of(p), 1, kMostCalls);
}

Result<> check_dtype(const TensorType& type, DType expected, const std::string& name) {
  if (type.dtype == expected) return Ok();
  return corrupt(name + " is " + to_string(type) + ", expected " +
                 std::string(to_string(expected)));
}

// Every element of the result is made once: sorted by stride, each axis steps over all before it.
Result<> check_result(const MatmulProblem& p, const TensorType& type) {
  KILN_RETURN_IF_ERROR(check_dtype(type, p.result_dtype, "the result"));
  if (p.d.transposed) return corrupt("the result is transposed");
  KILN_RETURN_IF_ERROR(check_view(p, p.d, p.m, p.n, type, "the result"));
  std::vector<std::pair<int64_t, int64_t>> axes = {{1, p.n}, {p.d.leading, p.m}};
  for (size_t i = 0; i < p.batch.size(); ++i) axes.emplace_back(p.d.batch_strides[i], p.batch[i]);
  std::erase_if(axes, [](const auto& axis) { return axis.second == 1; });
  std::sort(axes.begin(), axes.end());
  int64_t made = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride != made) {
      return corrupt("a stride of the result is " + std::to_string(stride) + ", expected " +
                     std::to_string(made));
    }
    made = add_product(0, made, extent);
  }
  if (made == type.elements()) return Ok();
  return corrupt("it makes " + std::to_string(made) + " elements, the result is " +
                 to_string(type));
}

}  // namespace

DType addend_dtype(const MatmulProblem& problem) {
  return quantises(problem) ? DType::kBF16 : problem.result_dtype;
}

std::string_view to_string(Compute compute) {
  constexpr std::string_view kNames[] = {"f32", "tf32", "f64", "fast_f32"};
  return kNames[static_cast<size_t>(compute)];
}

std::string_view to_string(MatmulProblem::Activation activation) {
  constexpr std::string_view kNames[] = {"none", "relu", "gelu_tanh"};
  return kNames[static_cast<size_t>(activation)];
}

int64_t calls_of(const MatmulProblem& problem) {
  int64_t calls = 1;
  for (size_t axis = 0; axis + 1 < problem.batch.size(); ++axis) {
    calls = add_product(0, calls, problem.batch[axis]);
  }
  return calls;
}

int64_t call_offset(const MatmulProblem& problem, const MatrixView& view, int64_t call) {
  int64_t offset = 0;
  for (size_t axis = problem.batch.empty() ? 0 : problem.batch.size() - 1; axis-- > 0;) {
    offset += call % problem.batch[axis] * view.batch_strides[axis];
    call /= problem.batch[axis];
  }
  return offset;
}

uint64_t alignment_of(const MatmulProblem& problem) {
  uint64_t alignment = 64;
  const auto limit = [&](const MatrixView& view, DType dtype) {
    const auto element_bytes = static_cast<uint64_t>(bits_of(dtype)) / 8;
    for (size_t axis = 0; axis + 1 < problem.batch.size(); ++axis) {
      const uint64_t bytes = static_cast<uint64_t>(view.batch_strides[axis]) * element_bytes;
      while (bytes % alignment != 0) alignment /= 2;
    }
  };
  limit(problem.a, problem.operand_dtype);
  limit(problem.b, problem.operand_dtype);
  limit(problem.d, problem.result_dtype);
  return alignment;
}

Result<> check(const MatmulProblem& p, std::span<const TensorType> inputs,
               std::span<const TensorType> outputs) {
  const size_t expected = size_t{2} + p.bias + p.residual + quantises(p);
  if (inputs.size() != expected || outputs.size() != 1) {
    return corrupt("there are " + std::to_string(inputs.size()) + " inputs and " +
                   std::to_string(outputs.size()) + " outputs, expected " +
                   std::to_string(expected) + " and 1");
  }
  KILN_RETURN_IF_ERROR(check_dtypes(p));
  KILN_RETURN_IF_ERROR(check_extents(p));
  KILN_RETURN_IF_ERROR(check_codes(p));
  KILN_RETURN_IF_ERROR(check_dtype(inputs[0], p.operand_dtype, "a"));
  KILN_RETURN_IF_ERROR(check_view(p, p.a, p.m, p.k, inputs[0], "a"));
  KILN_RETURN_IF_ERROR(check_dtype(inputs[1], p.operand_dtype, "b"));
  KILN_RETURN_IF_ERROR(check_view(p, p.b, p.k, p.n, inputs[1], "b"));
  KILN_RETURN_IF_ERROR(check_result(p, outputs[0]));
  if (p.bias) {
    KILN_RETURN_IF_ERROR(check_dtype(inputs[2], addend_dtype(p), "the bias"));
    KILN_RETURN_IF_ERROR(check_range("the bias's length", inputs[2].elements(), p.n, p.n));
  }
  if (p.residual) {
    const TensorType& residual = inputs.back();
    KILN_RETURN_IF_ERROR(check_dtype(residual, p.result_dtype, "the residual"));
    KILN_RETURN_IF_ERROR(check_view(p, p.d, p.m, p.n, residual, "the residual"));
  }
  if (quantises(p)) {
    KILN_RETURN_IF_ERROR(check_dtype(inputs.back(), DType::kF32, "the scale"));
    KILN_RETURN_IF_ERROR(check_range("the scale's length", inputs.back().elements(), 1, 1));
  }
  return Ok();
}

}  // namespace kiln::cuda
