#include <algorithm>
#include <array>
#include <set>

#include "builder/ir/graph.h"
#include "builder/ir/opaque_ops.h"

namespace kiln::ir {
namespace {

using Types = std::span<const TensorType>;
using Inferred = Result<std::vector<TensorType>>;

Error reject(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Inferred one(TensorType type) { return std::vector<TensorType>{std::move(type)}; }

std::string text(int64_t number) { return std::to_string(number); }

Result<> expect_count(Types in, size_t least, size_t most) {
  if (in.size() >= least && in.size() <= most) return Ok();
  return reject("found " + text(static_cast<int64_t>(in.size())) + " inputs, expected " +
                text(static_cast<int64_t>(least)) +
                (most == least ? "" : " to " + text(static_cast<int64_t>(most))));
}

Result<> expect_size(const std::vector<int64_t>& list, int64_t size, const char* what) {
  if (static_cast<int64_t>(list.size()) == size) return Ok();
  return reject(std::string(what) + " has " + text(static_cast<int64_t>(list.size())) +
                " entries, expected " + text(size));
}

Result<> expect_axis(int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank) return Ok();
  return reject("axis " + text(axis) + " is outside of rank " + text(rank));
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return reject("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Inferred infer(const Pointwise& op, Types in) {
  const auto count = static_cast<size_t>(arity(op.fn));
  KILN_RETURN_IF_ERROR(expect_count(in, count, count));
  const bool where = op.fn == ScalarFn::kWhere;
  if (where && in[0].dtype != DType::kBool) {
    return reject("where's condition is " + std::string(to_string(in[0].dtype)) +
                  ", expected bool");
  }
  TensorType out{in[where ? 1 : 0].dtype, in[0].shape};
  for (size_t i = 1; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(out.shape, broadcast(out.shape, in[i].shape));
    if (op.fn != ScalarFn::kPow && !(where && i == 1) && in[i].dtype != out.dtype) {
      return reject(std::string(to_string(op.fn)) + ": inputs have the types " +
                    std::string(to_string(out.dtype)) + " and " +
                    std::string(to_string(in[i].dtype)) + ", expected one type");
    }
  }
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  if (yields_bool(op.fn)) out.dtype = DType::kBool;
  return one(std::move(out));
}

Inferred infer(const Cast& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  return one({op.to, in[0].shape});
}

Inferred infer(const Reduce& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  if (!std::is_sorted(op.axes.begin(), op.axes.end(), std::less_equal<>())) {
    return reject("reduce: axes are not sorted and unique");
  }
  TensorType out{in[0].dtype, {}};
  for (int64_t axis : op.axes) KILN_RETURN_IF_ERROR(expect_axis(axis, in[0].rank()));
  for (int64_t i = 0; i < in[0].rank(); ++i) {
    const bool reduced = std::binary_search(op.axes.begin(), op.axes.end(), i);
    if (!reduced) out.shape.push_back(in[0].shape[static_cast<size_t>(i)]);
    if (reduced && op.keep_dims) out.shape.push_back(1);
  }
  return one(std::move(out));
}

Inferred infer(const Transpose& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  KILN_RETURN_IF_ERROR(expect_size(op.perm, in[0].rank(), "transpose: perm"));
  TensorType out{in[0].dtype, {}};
  std::set<int64_t> seen;
  for (int64_t axis : op.perm) {
    KILN_RETURN_IF_ERROR(expect_axis(axis, in[0].rank()));
    if (!seen.insert(axis).second) return reject("transpose: perm repeats axis " + text(axis));
    out.shape.push_back(in[0].shape[static_cast<size_t>(axis)]);
  }
  return one(std::move(out));
}

Inferred infer(const Reshape& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  if (checked_element_count(op.shape) != in[0].elements()) {
    return reject("reshape: " + to_string(in[0].shape) + " has " + text(in[0].elements()) +
                  " elements, the target " + to_string(op.shape) + " has another number");
  }
  return one({in[0].dtype, op.shape});
}

Inferred infer(const Broadcast& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  KILN_ASSIGN_OR_RETURN(const Shape shape, broadcast(in[0].shape, op.shape));
  if (shape != op.shape || !checked_element_count(op.shape)) {
    return reject("broadcast: " + to_string(in[0].shape) + " does not broadcast to " +
                  to_string(op.shape));
  }
  return one({in[0].dtype, op.shape});
}

Inferred infer(const Slice& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  const int64_t rank = in[0].rank();
  KILN_RETURN_IF_ERROR(expect_size(op.starts, rank, "slice: starts"));
  KILN_RETURN_IF_ERROR(expect_size(op.sizes, rank, "slice: sizes"));
  KILN_RETURN_IF_ERROR(expect_size(op.steps, rank, "slice: steps"));
  for (size_t i = 0; i < op.sizes.size(); ++i) {
    const int64_t extent = in[0].shape[i];
    if (op.sizes[i] < 0 || op.sizes[i] > extent) {
      return reject("slice: size " + text(op.sizes[i]) + " of axis " +
                    text(static_cast<int64_t>(i)) + " is outside of extent " + text(extent));
    }
    if (op.sizes[i] == 0) continue;
    const int64_t step = op.sizes[i] == 1 ? 0 : op.steps[i];  // the step of one element is idle
    const bool step_fits = step > -extent && step < extent;
    const int64_t last = step_fits ? op.starts[i] + (op.sizes[i] - 1) * step : -1;
    if (op.starts[i] < 0 || op.starts[i] >= extent || last < 0 || last >= extent) {
      return reject("slice: axis " + text(static_cast<int64_t>(i)) + " leaves extent " +
                    text(extent));
    }
  }
  return one({in[0].dtype, op.sizes});
}

Inferred infer(const Pad& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 2));
  KILN_RETURN_IF_ERROR(expect_size(op.before, in[0].rank(), "pad: before"));
  KILN_RETURN_IF_ERROR(expect_size(op.after, in[0].rank(), "pad: after"));
  if (in[1].elements() != 1 || in[1].dtype != in[0].dtype) {
    return reject("pad: value is " + to_string(in[1]) + ", expected one element of " +
                  std::string(to_string(in[0].dtype)));
  }
  TensorType out = in[0];
  for (size_t i = 0; i < out.shape.size(); ++i) {
    constexpr int64_t kLimit = int64_t{1} << 60;
    if (op.before[i] < 0 || op.after[i] < 0 || op.before[i] > kLimit || op.after[i] > kLimit) {
      return reject("pad: amounts of axis " + text(static_cast<int64_t>(i)) + " are " +
                    text(op.before[i]) + " and " + text(op.after[i]) + ", expected 0 to 2^60");
    }
    out.shape[i] += op.before[i] + op.after[i];
  }
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  return one(std::move(out));
}

Inferred infer(const Concat& op, Types in) {
  if (in.empty()) return reject("concat: found no inputs, expected at least 1");
  KILN_RETURN_IF_ERROR(expect_axis(op.axis, in[0].rank()));
  const auto axis = static_cast<size_t>(op.axis);
  TensorType out = in[0];
  for (const TensorType& other : in.subspan(1)) {
    Shape expected = out.shape;
    if (other.rank() == out.rank()) expected[axis] = other.shape[axis];
    if (other.dtype != out.dtype || other.shape != expected) {
      return reject("concat: " + to_string(other) + " does not fit beside " + to_string(in[0]) +
                    " along axis " + text(op.axis));
    }
    out.shape[axis] += other.shape[axis];
  }
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  return one(std::move(out));
}

Inferred infer(const Gather& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 2));
  KILN_RETURN_IF_ERROR(expect_axis(op.axis, in[0].rank()));
  if (in[1].dtype != DType::kI32 && in[1].dtype != DType::kI64) {
    return reject("gather: indices are " + std::string(to_string(in[1].dtype)) +
                  ", expected i32 or i64");
  }
  TensorType out{in[0].dtype, {}};
  const auto at = in[0].shape.begin() + op.axis;
  out.shape.assign(in[0].shape.begin(), at);
  out.shape.insert(out.shape.end(), in[1].shape.begin(), in[1].shape.end());
  out.shape.insert(out.shape.end(), at + 1, in[0].shape.end());
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  return one(std::move(out));
}

Inferred infer(const MatMul& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 2));
  const TensorType &a = in[0], &b = in[1];
  if (a.rank() < 2 || b.rank() < 2 || a.dtype != b.dtype) {
    return reject("matmul: inputs are " + to_string(a) + " and " + to_string(b) +
                  ", expected rank 2 or more and one type");
  }
  const auto dim = [](const TensorType& t, bool last) {
    return t.shape[t.shape.size() - (last ? 1 : 2)];
  };
  const int64_t m = dim(a, op.transpose_a), k = dim(a, !op.transpose_a);
  const int64_t other_k = dim(b, op.transpose_b), n = dim(b, !op.transpose_b);
  if (k != other_k) {
    return reject("matmul: inner extents are " + text(k) + " (" + to_string(a) + ") and " +
                  text(other_k) + " (" + to_string(b) + "), expected equal");
  }
  TensorType out{a.dtype, {}};
  KILN_ASSIGN_OR_RETURN(out.shape, broadcast({a.shape.begin(), a.shape.end() - 2},
                                             {b.shape.begin(), b.shape.end() - 2}));
  out.shape.insert(out.shape.end(), {m, n});
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  return one(std::move(out));
}

struct ConvShape {
  const char* name;
  const std::vector<int64_t>&strides, &dilations, &pads_begin, &pads_end;
  int64_t groups;
};

// What Conv and ConvTranspose have in common. Amounts are bounded so that extents cannot overflow.
Result<> check_conv(const ConvShape& op, Types in, int64_t input_channels_of_weight,
                    int64_t output_channels) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 3));
  const std::string name = op.name;
  if (in[0].rank() < 3 || in[1].rank() != in[0].rank()) {
    return reject(name + ": weight has rank " + text(in[1].rank()) + ", input has rank " +
                  text(in[0].rank()) + ", expected equal ranks of 3 or more");
  }
  for (const TensorType& type : in) {
    if (type.dtype != in[0].dtype) {
      return reject(name + ": found " + to_string(type) + " beside " + to_string(in[0]) +
                    ", expected one type");
    }
  }
  const int64_t spatial = in[0].rank() - 2;
  for (const auto* list : {&op.strides, &op.dilations, &op.pads_begin, &op.pads_end}) {
    KILN_RETURN_IF_ERROR(expect_size(*list, spatial, op.name));
    const int64_t least = list == &op.strides || list == &op.dilations ? 1 : INT32_MIN;
    for (int64_t amount : *list) {
      if (amount < least || amount > INT32_MAX) {
        return reject(name + ": a stride, dilation or pad is " + text(amount));
      }
    }
  }
  if (op.groups < 1 || in[0].shape[1] % op.groups != 0 || output_channels % op.groups != 0) {
    return reject(name + ": group is " + text(op.groups) + ", expected a divisor of the " +
                  text(in[0].shape[1]) + " input and " + text(output_channels) +
                  " output channels");
  }
  if (in[0].shape[1] != input_channels_of_weight) {
    return reject(name + ": input has " + text(in[0].shape[1]) + " channels, weight " +
                  to_string(in[1].shape) + " with group " + text(op.groups) + " expects " +
                  text(input_channels_of_weight));
  }
  if (in.size() == 3 && in[2].shape != Shape{output_channels}) {
    return reject(name + ": bias is " + to_string(in[2].shape) + ", expected " +
                  text(output_channels));
  }
  return Ok();
}

Inferred conv_result(const char* name, TensorType out) {
  for (size_t i = 2; i < out.shape.size(); ++i) {
    if (out.shape[i] < 0) {
      return reject(std::string(name) + ": spatial axis " + text(static_cast<int64_t>(i) - 2) +
                    " is smaller than the kernel");
    }
  }
  if (!checked_element_count(out.shape)) return reject("the result is too large");
  return one(std::move(out));
}

Inferred infer(const Conv& op, Types in) {
  const ConvShape shape{"conv", op.strides, op.dilations, op.pads_begin, op.pads_end, op.groups};
  if (in.size() < 2 || in[1].rank() < 2) return reject("conv: expected an input and a weight");
  const auto per_group = in[1].shape[1];
  if (op.groups < 1 || op.groups > INT32_MAX || per_group > INT32_MAX) {
    return reject("conv: group is " + text(op.groups) + ", expected 1 or more");
  }
  KILN_RETURN_IF_ERROR(check_conv(shape, in, per_group * op.groups, in[1].shape[0]));
  TensorType out{in[0].dtype, {in[0].shape[0], in[1].shape[0]}};
  for (size_t i = 0; i < op.strides.size(); ++i) {
    const int64_t kernel = in[1].shape[i + 2];
    if (kernel < 1 || kernel > INT32_MAX) return reject("conv: kernel extent is " + text(kernel));
    const int64_t padded = in[0].shape[i + 2] + op.pads_begin[i] + op.pads_end[i];
    const int64_t window = (kernel - 1) * op.dilations[i] + 1;
    out.shape.push_back(padded < window ? -1 : (padded - window) / op.strides[i] + 1);
  }
  return conv_result("conv", std::move(out));
}

Inferred infer(const ConvTranspose& op, Types in) {
  const ConvShape shape{"conv_transpose", op.strides,  op.dilations,
                        op.pads_begin,    op.pads_end, op.groups};
  if (in.size() < 2 || in[1].rank() < 2) {
    return reject("conv_transpose: expected an input and a weight");
  }
  const auto per_group = in[1].shape[1];
  if (op.groups < 1 || op.groups > INT32_MAX || per_group > INT32_MAX) {
    return reject("conv_transpose: group is " + text(op.groups) + ", expected 1 or more");
  }
  KILN_RETURN_IF_ERROR(check_conv(shape, in, in[1].shape[0], per_group * op.groups));
  KILN_RETURN_IF_ERROR(expect_size(op.output_padding, in[0].rank() - 2, "output_padding"));
  TensorType out{in[0].dtype, {in[0].shape[0], per_group * op.groups}};
  for (size_t i = 0; i < op.strides.size(); ++i) {
    const int64_t kernel = in[1].shape[i + 2], extent = in[0].shape[i + 2];
    if (kernel < 1 || kernel > INT32_MAX || extent > (int64_t{1} << 31)) {
      return reject("conv_transpose: kernel extent is " + text(kernel));
    }
    if (op.output_padding[i] < 0 || op.output_padding[i] > INT32_MAX) {
      return reject("conv_transpose: output_padding is " + text(op.output_padding[i]));
    }
    out.shape.push_back((extent - 1) * op.strides[i] + op.output_padding[i] +
                        (kernel - 1) * op.dilations[i] + 1 - op.pads_begin[i] - op.pads_end[i]);
  }
  return conv_result("conv_transpose", std::move(out));
}

Inferred infer(const Attention&, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 3, 4));
  const auto types = to_string(in[0]) + ", " + to_string(in[1]) + ", " + to_string(in[2]);
  for (const TensorType& type : in.first(3)) {
    if (type.rank() != 4 || type.dtype != in[0].dtype || !is_float(type.dtype)) {
      return reject("attention: q, k, v are " + types + ", expected rank 4 and one float type");
    }
  }
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const bool heads_fit = k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0;
  if (q[0] != k[0] || q[0] != v[0] || !heads_fit || q[3] != k[3] || k[2] != v[2]) {
    return reject("attention: q, k, v are " + types + ", expected [B,H,S,D], [B,G,T,D], [B,G,T,E]");
  }
  if (in.size() == 4) {
    const Shape scores{q[0], q[1], q[2], k[2]};
    KILN_ASSIGN_OR_RETURN(const Shape shape, broadcast(in[3].shape, scores));
    if (shape != scores || (in[3].dtype != DType::kBool && !is_float(in[3].dtype))) {
      return reject("attention: mask is " + to_string(in[3]) +
                    ", expected bool or float that broadcasts to " + to_string(scores));
    }
  }
  return one({in[0].dtype, {q[0], q[1], q[2], v[3]}});
}

Inferred infer(const Opaque& op, Types in) {
  const OpaqueOp* row = find_opaque_op(op.operation.name);
  if (!row) return reject("there is no operation '" + op.operation.name + "'");
  return row->infer(op.operation, in);
}

Inferred infer(const PluginCall& op, Types) {
  return reject("plugin '" + op.name + "' must be given its output types");
}

std::vector<TensorType> output_types(const Graph& body, size_t first = 0) {
  std::vector<TensorType> types;
  for (ValueId id : body.outputs().subspan(first)) types.push_back(body.type(id));
  return types;
}

Result<> expect_arguments(const Graph& body, Types in, const char* what) {
  if (body.inputs().size() != in.size()) {
    return reject(std::string(what) + " takes " + text(static_cast<int64_t>(body.inputs().size())) +
                  " inputs, found " + text(static_cast<int64_t>(in.size())));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (body.type(body.inputs()[i]) != in[i]) {
      return reject(std::string(what) + ": input " + text(static_cast<int64_t>(i)) + " is " +
                    to_string(in[i]) + ", the body expects " +
                    to_string(body.type(body.inputs()[i])));
    }
  }
  return Ok();
}

Inferred infer(const If& op, Types in) {
  if (in.empty() || in[0].dtype != DType::kBool || in[0].elements() != 1) {
    return reject("if: the condition must be one bool");
  }
  KILN_RETURN_IF_ERROR(expect_arguments(*op.then_body, in.subspan(1), "if: then branch"));
  KILN_RETURN_IF_ERROR(expect_arguments(*op.else_body, in.subspan(1), "if: else branch"));
  const auto types = output_types(*op.then_body), other = output_types(*op.else_body);
  if (types.size() != other.size()) {
    return reject("if: the then branch has " + text(static_cast<int64_t>(types.size())) +
                  " outputs, the else branch " + text(static_cast<int64_t>(other.size())));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != other[i]) {
      return reject("if: output " + text(static_cast<int64_t>(i)) + " is " + to_string(types[i]) +
                    " in the then branch and " + to_string(other[i]) + " in the else branch");
    }
  }
  return types;
}

Inferred infer(const Loop& op, Types in) {
  if (in.size() < 2 || op.carried < 0 || in.size() < static_cast<size_t>(op.carried) + 2) {
    return reject("loop: found " + text(static_cast<int64_t>(in.size())) +
                  " inputs, expected trip count, condition and the carried values");
  }
  KILN_RETURN_IF_ERROR(expect_arguments(*op.body, in, "loop: body"));
  const size_t carried = static_cast<size_t>(op.carried);
  auto types = output_types(*op.body);
  if (types.size() < carried + 1 || types[0].dtype != DType::kBool) {
    return reject("loop: the body must yield a bool condition and every carried value");
  }
  types.erase(types.begin());
  for (size_t i = 0; i < types.size(); ++i) {
    if (i < carried && types[i] != in[i + 2]) {
      return reject("loop: carried value " + text(static_cast<int64_t>(i)) + " enters as " +
                    to_string(in[i + 2]) + " and leaves as " + to_string(types[i]));
    }
    if (i < carried) continue;
    if (op.trip_count < 0) return reject("loop: scanned outputs need a constant trip count");
    types[i].shape.insert(types[i].shape.begin(), op.trip_count);
    if (!checked_element_count(types[i].shape)) return reject("the result is too large");
  }
  return types;
}

Inferred infer(const Region& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_arguments(*op.body, in, "region"));
  return output_types(*op.body);
}

}  // namespace

Result<std::vector<TensorType>> infer_types(const Op& op, std::span<const TensorType> inputs) {
  return std::visit([&](const auto& alternative) { return infer(alternative, inputs); }, op);
}

}  // namespace kiln::ir
