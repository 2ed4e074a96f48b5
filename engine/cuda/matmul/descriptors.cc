#include "engine/cuda/matmul/descriptors.h"

#include <string>

namespace kiln::cuda {
namespace {

using Activation = MatmulProblem::Activation;
using Compute = MatmulProblem::Compute;

cublasLtEpilogue_t epilogue_of(const MatmulProblem& problem) {
  switch (problem.activation) {
    case Activation::kRelu:
      return problem.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::kGeluTanh:
      return problem.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return problem.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

class Describe {
 public:
  Describe(const CublasLtApi& cublaslt, const MatmulProblem& problem)
      : cublaslt_(cublaslt), problem_(problem) {}

  Result<> operation(const MatmulAddends& addends, cublasLtMatmulDesc_t to) const {
    const Compute compute = problem_.compute;
    KILN_RETURN_IF_ERROR(check(cublaslt_,
                               cublaslt_.matmul_desc_init(to, sizeof *to, compute_type_of(compute),
                                                          scale_type_of(compute)),
                               "describing a matmul"));
    KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATMUL_DESC_TRANSA, operation_of(problem_.b)));
    KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATMUL_DESC_TRANSB, operation_of(problem_.a)));
    KILN_RETURN_IF_ERROR(
        set(to, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue_of(problem_))));
    if (compute == Compute::kFastF32) {
      KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1}));
    }
    // Some versions refuse a bias without an address; any aligned one does for asking.
    alignas(64) static constexpr char kSomewhere = 0;
    const auto address = [](const void* known) { return known != nullptr ? known : &kSomewhere; };
    if (quantises(problem_)) {
      KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, address(addends.scale)));
    }
    if (!problem_.bias) return Ok();
    if (bits_of(problem_.operand_dtype) == 8) {
      const auto type = static_cast<int32_t>(data_type_of(addend_dtype(problem_)));
      KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
    }
    return set(to, CUBLASLT_MATMUL_DESC_BIAS_POINTER, address(addends.bias));
  }

  // `rows` and `columns` of the operand, row-major as all of ours.
  Result<> layout(const MatrixView& view, DType dtype, int64_t rows, int64_t columns,
                  cublasLtMatrixLayout_t to) const {
    if (view.transposed) std::swap(rows, columns);
    KILN_RETURN_IF_ERROR(
        check(cublaslt_,
              cublaslt_.matrix_layout_init(to, sizeof *to, data_type_of(dtype),
                                           static_cast<uint64_t>(columns),
                                           static_cast<uint64_t>(rows), view.leading),
              "describing a matrix"));
    if (problem_.batch.empty()) return Ok();
    const auto count = static_cast<int32_t>(problem_.batch.back());
    const int64_t stride = view.batch_strides.back();
    KILN_RETURN_IF_ERROR(set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count));
    return set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }

 private:
  static int32_t operation_of(const MatrixView& view) {
    return view.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  template <class T>
  Result<> set(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute, T value) const {
    return check(cublaslt_,
                 cublaslt_.matmul_desc_set_attribute(
                     to, attribute, static_cast<const void*>(&value), sizeof value),
                 "setting attribute " + std::to_string(attribute) + " of a matmul");
  }
  template <class T>
  Result<> set(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t attribute,
               T value) const {
    return check(cublaslt_,
                 cublaslt_.matrix_layout_set_attribute(to, attribute, &value, sizeof value),
                 "setting attribute " + std::to_string(attribute) + " of a matrix");
  }

  const CublasLtApi& cublaslt_;
  const MatmulProblem& problem_;
};

}  // namespace

Result<> describe(const CublasLtApi& cublaslt, const MatmulProblem& p, const MatmulAddends& addends,
                  MatmulDescriptors& descriptors) {
  const Describe to(cublaslt, p);
  KILN_RETURN_IF_ERROR(to.operation(addends, &descriptors.operation));
  KILN_RETURN_IF_ERROR(to.layout(p.a, p.operand_dtype, p.m, p.k, &descriptors.a));
  KILN_RETURN_IF_ERROR(to.layout(p.b, p.operand_dtype, p.k, p.n, &descriptors.b));
  KILN_RETURN_IF_ERROR(to.layout(p.d, addend_dtype(p), p.m, p.n, &descriptors.c));
  return to.layout(p.d, p.result_dtype, p.m, p.n, &descriptors.d);
}

cudaDataType_t data_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF8E4M3FN:
      return CUDA_R_8F_E4M3;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type_of(Compute compute) {
  switch (compute) {
    case Compute::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Compute::kF64:
      return CUBLAS_COMPUTE_64F;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

cudaDataType_t scale_type_of(Compute compute) {
  return compute == Compute::kF64 ? CUDA_R_64F : CUDA_R_32F;
}

}  // namespace kiln::cuda
