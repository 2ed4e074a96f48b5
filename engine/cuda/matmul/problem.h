// MatmulProblem: what one cuBLASLt step computes, in row-major terms.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::cuda {

// A stack of matrices within a dense tensor. Element (i, j) of the stored matrix that belongs to
// batch index x lies at i * leading + j + sum of x[axis] * batch_strides[axis], in elements.
struct MatrixView {
  bool transposed = false;  // the stored matrix is the transpose of the operand
  int64_t leading = 1;
  std::vector<int64_t> batch_strides;  // as MatmulProblem::batch; 0 repeats a matrix
  friend bool operator==(const MatrixView&, const MatrixView&) = default;
};

// d = activation(alpha * a b [+ residual] [+ bias]); a [m, k], b [k, n], residual laid out as d
// [m, n], bias [n]. A d of f8e4m3fn is multiplied by `scale`, one f32, and saturated.
struct MatmulProblem {
  enum class Compute : uint8_t {
    kF32,   // products and sums in f32
    kTf32,  // f32 operands are rounded to TF32
    kF64,
    kFastF32,  // of f8e4m3fn: tensor cores keep running sums of about 14 bits
  };
  enum class Activation : uint8_t { kNone, kRelu, kGeluTanh };

  int64_t m = 1, n = 1, k = 1;
  // Extents of the batch axes. cuBLASLt has one, the last; for each index of those before it there
  // is a call of its own.
  std::vector<int64_t> batch;
  DType operand_dtype = DType::kF32;  // of a and b
  DType result_dtype = DType::kF32;   // of d
  MatrixView a, b, d;                 // d is not transposed
  Compute compute = Compute::kF32;
  double alpha = 1;
  bool bias = false, residual = false;
  Activation activation = Activation::kNone;
  friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
};

// Whether d is of codes, which take a scale.
inline bool quantises(const MatmulProblem& problem) {
  return problem.result_dtype == DType::kF8E4M3FN;
}
// Of bias and residual: d's, but bf16 where d is of codes.
DType addend_dtype(const MatmulProblem& problem);

std::string_view to_string(MatmulProblem::Compute compute);        // "f32", "tf32", "f64", ...
std::string_view to_string(MatmulProblem::Activation activation);  // "none", "relu", "gelu_tanh"

// How many calls of cuBLASLt it takes, at most kMostCalls if check() accepts it.
int64_t calls_of(const MatmulProblem& problem);
inline constexpr int64_t kMostCalls = 256;

// Where the matrices of call number `call` start, in elements.
int64_t call_offset(const MatmulProblem& problem, const MatrixView& view, int64_t call);

// What an algorithm may assume of every matrix's address, in bytes: a power of two, 64 at most.
uint64_t alignment_of(const MatmulProblem& problem);

// Whether cuBLASLt's GPU code, given the tensors' addresses, stays within them and fills the
// result: inputs are a, b, then bias, residual and scale, where there are any. The error names
// field, found and expected; its code is kCorruptData. REQUIRES: extents of the types are checked.
Result<> check(const MatmulProblem& problem, std::span<const TensorType> inputs,
               std::span<const TensorType> outputs);

}  // namespace kiln::cuda
