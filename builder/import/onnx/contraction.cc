// Matrix products and convolutions.
#include <algorithm>

#include "builder/import/onnx/contraction.h"
#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

constexpr int64_t kMaxAmount = INT32_MAX;  // of strides, pads and the like

std::string number(int64_t value) { return std::to_string(value); }

Outputs matmul(NodeContext& c) {
  const std::vector<ValueId> operands{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(operands));
  if (c.rank(operands[0]) == 0 || c.rank(operands[1]) == 0) {
    return c.fail("inputs are " + to_string(c.type(operands[0])) + " and " +
                  to_string(c.type(operands[1])) + ", expected rank 1 or more");
  }
  return one(numpy_matmul(c, operands[0], operands[1]));
}

ValueId scaled(NodeContext& c, ValueId x, double factor) {
  if (factor == 1.0) return x;
  return c.mul(x, c.scalar(factor, c.dtype(x)));
}

Outputs gemm(NodeContext& c) {
  const std::vector<ValueId> operands{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(operands));
  if (c.rank(operands[0]) != 2 || c.rank(operands[1]) != 2) {
    return c.fail("inputs are " + to_string(c.type(operands[0])) + " and " +
                  to_string(c.type(operands[1])) + ", expected rank 2");
  }
  const ValueId product =
      c.matmul(operands[0], operands[1], c.get_int("transA", 0) != 0, c.get_int("transB", 0) != 0);
  const ValueId result = scaled(c, product, c.get_float("alpha", 1.0));
  if (!c.has(2)) return one(result);
  const ValueId addend = scaled(c, c.input(2), c.get_float("beta", 1.0));
  const Shape shape = c.shape(result);
  return one(c.broadcast(c.add(result, addend), shape));
}

Outputs fused_matmul(NodeContext& c) {
  ValueId a = c.input(0), b = c.input(1);
  if (c.get_int("transBatchA", 0) != 0 || c.get_int("transBatchB", 0) != 0) {
    return c.unsupported("transBatchA and transBatchB are not supported");
  }
  const bool transpose_a = c.get_int("transA", 0) != 0, transpose_b = c.get_int("transB", 0) != 0;
  if (c.rank(a) < 2 || c.rank(b) < 2) {
    return one(scaled(c, numpy_matmul(c, a, b), c.get_float("alpha", 1.0)));
  }
  return one(scaled(c, c.matmul(a, b, transpose_a, transpose_b), c.get_float("alpha", 1.0)));
}

// The list attribute, or `fallback` for each of the spatial axes.
Result<std::vector<int64_t>> spatial(NodeContext& c, const char* name, size_t count,
                                     int64_t fallback) {
  auto values = c.get_ints(name);
  if (!c.has_attribute(name)) values.assign(count, fallback);
  if (values.size() != count) {
    return c.fail(std::string(name) + " has " + number(int64_t(values.size())) +
                  " entries, expected " + number(int64_t(count)));
  }
  for (int64_t value : values) {
    if (value < -kMaxAmount || value > kMaxAmount) {
      return c.fail(std::string(name) + " has the entry " + number(value));
    }
  }
  return values;
}

Result<> check_ranks(NodeContext& c, const Shape& input, const Shape& weight) {
  if (input.size() < 3 || weight.size() != input.size()) {
    return c.fail("weight has rank " + number(int64_t(weight.size())) + ", input has rank " +
                  number(int64_t(input.size())) + ", expected equal ranks of 3 or more");
  }
  const auto kernel = c.get_ints("kernel_shape");
  if (c.has_attribute("kernel_shape") && kernel != Shape(weight.begin() + 2, weight.end())) {
    return c.fail("kernel_shape is " + to_string(kernel) + ", the weight is " + to_string(weight));
  }
  return Ok();
}

struct Pads {
  std::vector<int64_t> begin, end;
};

Result<Pads> explicit_pads(NodeContext& c, size_t count) {
  KILN_ASSIGN_OR_RETURN(const auto pads, spatial(c, "pads", 2 * count, 0));
  const auto middle = pads.begin() + static_cast<int64_t>(count);
  return Pads{{pads.begin(), middle}, {middle, pads.end()}};
}

// Splits a total so that SAME_UPPER has the larger half at the end.
void split_pad(Pads& pads, int64_t total, bool upper) {
  const int64_t smaller = total / 2, larger = total - smaller;
  pads.begin.push_back(upper ? smaller : larger);
  pads.end.push_back(upper ? larger : smaller);
}

Result<std::string> auto_pad(NodeContext& c) {
  const std::string mode = c.get_string("auto_pad", "NOTSET");
  for (const char* known : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
    if (mode == known) return mode;
  }
  return c.fail("auto_pad is '" + mode + "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

Outputs conv(NodeContext& c) {
  const std::vector<ValueId> operands{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(operands));
  KILN_ASSIGN_OR_RETURN(const ir::Conv op,
                        read_conv(c, c.shape(operands[0]), c.shape(operands[1])));
  auto inputs = operands;
  if (c.has(2)) inputs.push_back(c.input(2));
  return one(c.emit(op, inputs));
}

// output_shape and SAME_* choose the pads such that the output has the wanted extents.
Result<Pads> transposed_pads(NodeContext& c, const ir::ConvTranspose& op, const Shape& input,
                             const Shape& weight) {
  const size_t count = op.strides.size();
  KILN_ASSIGN_OR_RETURN(const std::string mode, auto_pad(c));
  auto wanted = c.get_ints("output_shape");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (mode == "VALID") return Pads{std::vector<int64_t>(count), std::vector<int64_t>(count)};
  if (wanted.empty() && !same) return explicit_pads(c, count);
  if (wanted.size() == count + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != count) {
    return c.fail("output_shape has " + number(int64_t(wanted.size())) + " entries, expected " +
                  number(int64_t(count)));
  }
  Pads pads;
  for (size_t i = 0; i < count; ++i) {
    const int64_t target = wanted.empty() ? input[i + 2] * op.strides[i] : wanted[i];
    if (target < 0 || target > kMaxAmount) return c.fail("output extent is " + number(target));
    const int64_t full = op.strides[i] * (input[i + 2] - 1) + op.output_padding[i] +
                         (weight[i + 2] - 1) * op.dilations[i] + 1;
    const int64_t total = full - target;
    if (total >= 0) {
      split_pad(pads, total, mode == "SAME_UPPER");
    } else {  // a larger output gets its zeros at the end
      pads.begin.push_back(0);
      pads.end.push_back(total);
    }
  }
  return pads;
}

Outputs conv_transpose(NodeContext& c) {
  const std::vector<ValueId> operands{c.input(0), c.input(1)};
  KILN_RETURN_IF_ERROR(c.require_same_dtype(operands));
  const Shape input = c.shape(operands[0]), weight = c.shape(operands[1]);
  KILN_RETURN_IF_ERROR(check_ranks(c, input, weight));
  const size_t count = input.size() - 2;
  ir::ConvTranspose op;
  op.groups = c.get_int("group", 1);
  KILN_ASSIGN_OR_RETURN(op.strides, spatial(c, "strides", count, 1));
  KILN_ASSIGN_OR_RETURN(op.dilations, spatial(c, "dilations", count, 1));
  KILN_ASSIGN_OR_RETURN(op.output_padding, spatial(c, "output_padding", count, 0));
  KILN_ASSIGN_OR_RETURN(const Pads pads, transposed_pads(c, op, input, weight));
  op.pads_begin = pads.begin;
  op.pads_end = pads.end;
  auto inputs = operands;
  if (c.has(2)) inputs.push_back(c.input(2));
  return one(c.emit(op, inputs));
}

constexpr Handler kHandlers[] = {
    {"", "Conv", conv},     {"", "ConvTranspose", conv_transpose},          {"", "Gemm", gemm},
    {"", "MatMul", matmul}, {"com.microsoft", "FusedMatMul", fused_matmul},
};

}  // namespace

ValueId numpy_matmul(NodeContext& c, ValueId a, ValueId b) {
  const bool row = c.rank(a) == 1, column = c.rank(b) == 1;
  if (row) a = c.unsqueeze(a, {0});
  if (column) b = c.unsqueeze(b, {1});
  const ValueId product = c.matmul(a, b);
  std::vector<int64_t> dropped;
  if (row) dropped.push_back(c.rank(product) - 2);
  if (column) dropped.push_back(c.rank(product) - 1);
  return c.squeeze(product, dropped);
}

Result<ir::Conv> read_conv(NodeContext& c, const Shape& input, const Shape& weight) {
  KILN_RETURN_IF_ERROR(check_ranks(c, input, weight));
  const size_t count = input.size() - 2;
  ir::Conv op;
  op.groups = c.get_int("group", 1);
  if (op.groups < 1) return c.fail("group is " + number(op.groups) + ", expected 1 or more");
  KILN_ASSIGN_OR_RETURN(op.strides, spatial(c, "strides", count, 1));
  KILN_ASSIGN_OR_RETURN(op.dilations, spatial(c, "dilations", count, 1));
  KILN_ASSIGN_OR_RETURN(const std::string mode, auto_pad(c));
  Pads pads{std::vector<int64_t>(count), std::vector<int64_t>(count)};
  if (mode == "NOTSET") {
    KILN_ASSIGN_OR_RETURN(pads, explicit_pads(c, count));
  } else if (mode != "VALID") {
    pads = {};
    for (size_t i = 0; i < count; ++i) {
      if (op.strides[i] < 1) return c.fail("strides has the entry " + number(op.strides[i]));
      const int64_t target = (input[i + 2] + op.strides[i] - 1) / op.strides[i];
      const int64_t window = (weight[i + 2] - 1) * op.dilations[i] + 1;
      const int64_t total = (target - 1) * op.strides[i] + window - input[i + 2];
      split_pad(pads, std::max<int64_t>(total, 0), mode == "SAME_UPPER");
    }
  }
  op.pads_begin = pads.begin;
  op.pads_end = pads.end;
  return op;
}

std::span<const Handler> contraction_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
