#include "builder/ir/type_rules/type_rules.h"

namespace kiln::ir {
namespace {

// What Conv and ConvTranspose have in common.
struct Convolution {
  std::string name;
  const std::vector<int64_t>&strides, &dilations, &pads_begin, &pads_end;
  int64_t groups;
};

Convolution view(const Conv& op) {
  return {"conv", op.strides, op.dilations, op.pads_begin, op.pads_end, op.groups};
}
Convolution view(const ConvTranspose& op) {
  return {"conv_transpose", op.strides, op.dilations, op.pads_begin, op.pads_end, op.groups};
}

Result<> check_inputs(const Convolution& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 3));
  if (in[0].rank() < 3 || in[1].rank() != in[0].rank()) {
    return reject(op.name + ": weight has rank " + std::to_string(in[1].rank()) +
                  ", input has rank " + std::to_string(in[0].rank()) +
                  ", expected equal ranks of 3 or more");
  }
  for (const TensorType& type : in) {
    if (type.dtype != in[0].dtype) {
      return reject(op.name + ": found " + to_string(type) + " beside " + to_string(in[0]) +
                    ", expected one type");
    }
  }
  return Ok();
}

// Amounts are bounded so that extents cannot overflow.
Result<> check_amounts(const Convolution& op, Types in) {
  const int64_t spatial = in[0].rank() - 2;
  for (const auto* list : {&op.strides, &op.dilations, &op.pads_begin, &op.pads_end}) {
    KILN_RETURN_IF_ERROR(expect_size(*list, spatial, op.name.c_str()));
    const int64_t least = list == &op.strides || list == &op.dilations ? 1 : INT32_MIN;
    for (int64_t amount : *list) {
      if (amount < least || amount > INT32_MAX) {
        return reject(op.name + ": a stride, dilation or pad is " + std::to_string(amount));
      }
    }
  }
  for (size_t i = 2; i < in[1].shape.size(); ++i) {
    const int64_t kernel = in[1].shape[i];
    if (kernel < 1 || kernel > INT32_MAX) {
      return reject(op.name + ": kernel extent is " + std::to_string(kernel));
    }
  }
  if (op.groups < 1 || op.groups > INT32_MAX || in[1].shape[1] > INT32_MAX) {
    return reject(op.name + ": group is " + std::to_string(op.groups) + ", expected 1 or more");
  }
  return Ok();
}

// REQUIRES: the inputs and amounts are checked.
Result<> check_channels(const Convolution& op, Types in, int64_t input_channels_of_weight,
                        int64_t output_channels) {
  const int64_t input_channels = in[0].shape[1];
  if (input_channels % op.groups != 0 || output_channels % op.groups != 0) {
    return reject(op.name + ": group is " + std::to_string(op.groups) +
                  ", expected a divisor of the " + std::to_string(input_channels) + " input and " +
                  std::to_string(output_channels) + " output channels");
  }
  if (input_channels != input_channels_of_weight) {
    return reject(op.name + ": input has " + std::to_string(input_channels) + " channels, weight " +
                  to_string(in[1].shape) + " with group " + std::to_string(op.groups) +
                  " expects " + std::to_string(input_channels_of_weight));
  }
  if (in.size() == 3 && in[2].shape != Shape{output_channels}) {
    return reject(op.name + ": bias is " + to_string(in[2].shape) + ", expected " +
                  std::to_string(output_channels));
  }
  return Ok();
}

Inferred result(const Convolution& op, TensorType out) {
  for (size_t i = 2; i < out.shape.size(); ++i) {
    if (out.shape[i] < 0) {
      return reject(op.name + ": spatial axis " + std::to_string(i - 2) +
                    " is smaller than the kernel");
    }
  }
  return one(std::move(out));
}

}  // namespace

Inferred infer(const Conv& op, Types in) {
  const Convolution conv = view(op);
  KILN_RETURN_IF_ERROR(check_inputs(conv, in));
  KILN_RETURN_IF_ERROR(check_amounts(conv, in));
  const Shape& weight = in[1].shape;
  KILN_RETURN_IF_ERROR(check_channels(conv, in, weight[1] * op.groups, weight[0]));
  TensorType out{in[0].dtype, {in[0].shape[0], weight[0]}};
  for (size_t i = 0; i < op.strides.size(); ++i) {
    const int64_t padded = in[0].shape[i + 2] + op.pads_begin[i] + op.pads_end[i];
    const int64_t window = (weight[i + 2] - 1) * op.dilations[i] + 1;
    out.shape.push_back(padded < window ? -1 : (padded - window) / op.strides[i] + 1);
  }
  return result(conv, std::move(out));
}

Inferred infer(const ConvTranspose& op, Types in) {
  const Convolution conv = view(op);
  KILN_RETURN_IF_ERROR(check_inputs(conv, in));
  KILN_RETURN_IF_ERROR(check_amounts(conv, in));
  const Shape& weight = in[1].shape;
  const int64_t channels = weight[1] * op.groups;
  KILN_RETURN_IF_ERROR(check_channels(conv, in, weight[0], channels));
  KILN_RETURN_IF_ERROR(
      expect_size(op.output_padding, in[0].rank() - 2, "conv_transpose: output_padding"));
  TensorType out{in[0].dtype, {in[0].shape[0], channels}};
  for (size_t i = 0; i < op.strides.size(); ++i) {
    const int64_t extent = in[0].shape[i + 2], extra = op.output_padding[i];
    if (extent > int64_t{1} << 31) {
      return reject("conv_transpose: input extent is " + std::to_string(extent));
    }
    if (extra < 0 || extra > INT32_MAX) {
      return reject("conv_transpose: output_padding is " + std::to_string(extra));
    }
    out.shape.push_back((extent - 1) * op.strides[i] + extra +
                        (weight[i + 2] - 1) * op.dilations[i] + 1 - op.pads_begin[i] -
                        op.pads_end[i]);
  }
  return result(conv, std::move(out));
}

}  // namespace kiln::ir
