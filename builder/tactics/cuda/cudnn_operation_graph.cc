#include "builder/tactics/cuda/cudnn_operation_graph.h"

namespace kiln {
namespace {

using cuda::CudnnApi;
using cuda::CudnnDescriptor;
using cuda::DescriptorWriter;

// Buffers start at multiples of 256 bytes, vectors take 16.
constexpr int64_t kAlignment = 16;

Result<cudnnDataType_t> data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kI32:
      return CUDNN_DATA_INT32;
    case DType::kBool:
      return CUDNN_DATA_BOOLEAN;
    default:
      return Error{ErrorCode::kUnsupported,
                   "cuDNN is not used for " + std::string(to_string(dtype))};
  }
}

// Fills `result` part by part; tensors come first, so tensor i is part i.
class Writer {
 public:
  Writer(const CudnnApi& cudnn, const CudnnProblem& problem) : cudnn_(cudnn), problem_(problem) {}

  Result<CudnnOperationGraph> write() {
    for (size_t i = 0; i < problem_.tensors.size(); ++i) KILN_RETURN_IF_ERROR(tensor(i));
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const CudnnOperation& operation : problem_.operations) {
      KILN_RETURN_IF_ERROR(std::visit([&](const auto& o) { return write(o); }, operation));
      operations.push_back(result_.parts.back().get());
    }
    KILN_ASSIGN_OR_RETURN(result_.graph,
                          make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "an operation graph")
                              .descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
                              .finish());
    return std::move(result_);
  }

 private:
  DescriptorWriter make(cudnnBackendDescriptorType_t type, const char* what) const {
    return {cudnn_, type, what};
  }
  const CudnnDescriptor& part(int64_t tensor) const {
    return result_.parts[static_cast<size_t>(tensor)];
  }
  Result<> keep(Result<CudnnDescriptor> descriptor) {
    if (!descriptor.ok()) return std::move(descriptor).error();
    result_.parts.push_back(std::move(*descriptor));
    return Ok();
  }

  Result<> tensor(size_t number) {
    const CudnnTensor& tensor = problem_.tensors[number];
    KILN_ASSIGN_OR_RETURN(const cudnnDataType_t type, data_type(tensor.dtype));
    DescriptorWriter writer = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    writer.choice(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .ints(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims)
        .ints(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
        .number(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(number))
        .number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
        .flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual)
        .flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.by_value.has_value());
    return keep(writer.finish());
  }

  Result<> write(const CudnnConvolution& o) {
    KILN_RETURN_IF_ERROR(keep(
        make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "a convolution")
            .choice(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
            .choice(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                    CUDNN_CROSS_CORRELATION)
            .number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(o.strides.size()))
            .ints(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, o.pads_begin)
            .ints(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, o.pads_end)
            .ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, o.strides)
            .ints(CUDNN_ATTR_CONVOLUTION_DILATIONS, o.dilations)
            .finish()));
    const CudnnDescriptor& description = result_.parts.back();
    if (o.transposed) {
      return keep(
          make(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "a deconvolution")
              .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, part(o.x))
              .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, part(o.w))
              .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, part(o.y))
              .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, description)
              .real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1)
              .real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0)
              .finish());
    }
    return keep(make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "a convolution")
                    .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, part(o.x))
                    .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, part(o.w))
                    .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, part(o.y))
                    .descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, description)
                    .real(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1)
                    .real(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0)
                    .finish());
  }

  Result<> write(const CudnnPointwise& o) {
    DescriptorWriter description = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "a pointwise function");
    KILN_ASSIGN_OR_RETURN(const cudnnDataType_t arithmetic, data_type(o.arithmetic));
    description.choice(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, o.mode)
        .choice(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, arithmetic);
    if (o.relu_low) description.real(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, *o.relu_low);
    if (o.relu_high) description.real(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, *o.relu_high);
    if (o.axis) description.number(CUDNN_ATTR_POINTWISE_AXIS, *o.axis);
    KILN_RETURN_IF_ERROR(keep(description.finish()));
    DescriptorWriter writer =
        make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "a pointwise operation");
    writer.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, result_.parts.back())
        .descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, part(o.x))
        .descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, part(o.y));
    if (o.b) writer.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, part(*o.b));
    if (o.condition) writer.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, part(*o.condition));
    return keep(writer.finish());
  }

  Result<> write(const CudnnMatmul& o) {
    KILN_RETURN_IF_ERROR(
        keep(make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product")
                 .choice(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
                 .finish()));
    return keep(make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product")
                    .descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, part(o.a))
                    .descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, part(o.b))
                    .descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, part(o.c))
                    .descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, result_.parts.back())
                    .finish());
  }

  Result<> write(const CudnnReduction& o) {
    KILN_RETURN_IF_ERROR(
        keep(make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction")
                 .choice(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
                 .choice(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, o.op)
                 .finish()));
    return keep(make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction")
                    .descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, result_.parts.back())
                    .descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, part(o.x))
                    .descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, part(o.y))
                    .finish());
  }

  const CudnnApi& cudnn_;
  const CudnnProblem& problem_;
  CudnnOperationGraph result_;
};

}  // namespace

Result<CudnnOperationGraph> make_operation_graph(const CudnnApi& cudnn,
                                                 const CudnnProblem& problem) {
  return Writer(cudnn, problem).write();
}

}  // namespace kiln
