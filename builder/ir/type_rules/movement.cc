#include "builder/ir/type_rules/type_rules.h"

#include <set>

namespace kiln::ir {

Inferred infer(const Transpose& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  KILN_RETURN_IF_ERROR(expect_size(op.perm, in[0].rank(), "transpose: perm"));
  TensorType out{in[0].dtype, {}};
  std::set<int64_t> seen;
  for (int64_t axis : op.perm) {
    KILN_RETURN_IF_ERROR(expect_axis(axis, in[0].rank()));
    if (!seen.insert(axis).second)
      return reject("transpose: perm repeats axis " + std::to_string(axis));
    out.shape.push_back(in[0].shape[static_cast<size_t>(axis)]);
  }
  return one(std::move(out));
}

Inferred infer(const Reshape& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  if (checked_element_count(op.shape) != in[0].elements()) {
    return reject("reshape: " + to_string(in[0].shape) + " has " +
                  std::to_string(in[0].elements()) + " elements, the target " +
                  to_string(op.shape) + " has another number");
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
      return reject("slice: size " + std::to_string(op.sizes[i]) + " of axis " + std::to_string(i) +
                    " is outside of extent " + std::to_string(extent));
    }
    if (op.sizes[i] == 0) continue;
    const int64_t step = op.sizes[i] == 1 ? 0 : op.steps[i];  // the step of one element is idle
    const bool step_fits = step > -extent && step < extent;
    const int64_t last = step_fits ? op.starts[i] + (op.sizes[i] - 1) * step : -1;
    if (op.starts[i] < 0 || op.starts[i] >= extent || last < 0 || last >= extent) {
      return reject("slice: axis " + std::to_string(i) + " leaves extent " +
                    std::to_string(extent));
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
      return reject("pad: amounts of axis " + std::to_string(i) + " are " +
                    std::to_string(op.before[i]) + " and " + std::to_string(op.after[i]) +
                    ", expected 0 to 2^60");
    }
    out.shape[i] += op.before[i] + op.after[i];
  }
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
                    " along axis " + std::to_string(op.axis));
    }
    out.shape[axis] += other.shape[axis];
  }
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
  return one(std::move(out));
}

}  // namespace kiln::ir
