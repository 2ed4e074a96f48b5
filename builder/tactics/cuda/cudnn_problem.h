// CudnnProblem: an operation graph for cuDNN as plain data.
#pragma once
#include <cudnn_graph.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "formats/tensor_type.h"

namespace kiln {

// A tensor's number in its problem is its id in cuDNN.
struct CudnnTensor {
  DType dtype = DType::kF32;
  Shape dims, strides;                           // in elements
  bool is_virtual = false;                       // exists inside of the kernel only
  std::optional<float> by_value = std::nullopt;  // a scalar passed by value
};

// y = x (*) w, dims N, C, spatial... and M, C / groups, kernel...; with `transposed`, x is the
// result of such a convolution of y: ConvTranspose with w [C, M / groups, kernel...].
struct CudnnConvolution {
  int64_t x = 0, w = 0, y = 0;
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  bool transposed = false;
};

struct CudnnPointwise {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  int64_t x = 0;
  std::optional<int64_t> b = std::nullopt;
  int64_t y = 0;
  std::optional<double> relu_low = std::nullopt, relu_high = std::nullopt;
  // Of CUDNN_POINTWISE_BINARY_SELECT: x where it is true, else b.
  std::optional<int64_t> condition = std::nullopt;
  std::optional<int64_t> axis = std::nullopt;  // of CUDNN_POINTWISE_GEN_INDEX
  DType arithmetic = DType::kF32;
};

struct CudnnMatmul {
  int64_t a = 0, b = 0, c = 0;
};

struct CudnnReduction {
  cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
  int64_t x = 0, y = 0;
};

using CudnnOperation = std::variant<CudnnConvolution, CudnnPointwise, CudnnMatmul, CudnnReduction>;

// Sums and products are f32.
struct CudnnProblem {
  std::vector<CudnnTensor> tensors;
  std::vector<CudnnOperation> operations;

  int64_t add(CudnnTensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<int64_t>(tensors.size()) - 1;
  }
};

// A line for each tensor and operation; different problems have different texts.
std::string to_text(const CudnnProblem& problem);

}  // namespace kiln
