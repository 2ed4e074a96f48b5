// Emitter: how import handlers append to the graph. One method an IR primitive; each returns the
// new value, or an existing one where the operation would change nothing.
//
// The first failure is remembered and every later call returns kNoValue, so that a handler can be
// written as an expression: the driver looks at error() when the handler is done. Nodes whose
// inputs are all small constants are evaluated at once: shape arithmetic never reaches the graph.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builder/import/onnx/constants.h"
#include "builder/ir/graph.h"

namespace kiln::onnx_import {

using ir::ValueId;
inline constexpr ValueId kNoValue{UINT32_MAX};

class Emitter {
 public:
  // `constants` must outlive the emitter. New nodes are called `name` and come from `origins`.
  Emitter(ir::Graph& graph, Constants& constants, std::string name,
          std::vector<std::string> origins);

  ir::Graph& graph() { return *graph_; }
  // REQUIRES: value is not kNoValue, or an error is pending (then a scalar's type comes back).
  const TensorType& type(ValueId value) const;
  DType dtype(ValueId value) const { return type(value).dtype; }
  const Shape& shape(ValueId value) const { return type(value).shape; }
  int64_t rank(ValueId value) const { return type(value).rank(); }

  // Remembers the first failure, and returns it for `return c.fail(...)`.
  Error fail(std::string message, ErrorCode code = ErrorCode::kInvalidArgument);
  Error unsupported(std::string message) {
    return fail(std::move(message), ErrorCode::kUnsupported);
  }
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

  ValueId emit(ir::Op op, std::vector<ValueId> inputs);  // an op with one output
  std::vector<ValueId> emit_all(ir::Op op, std::vector<ValueId> inputs);
  // An op whose types come from elsewhere.
  std::vector<ValueId> emit_typed(ir::Op op, std::vector<ValueId> inputs,
                                  std::span<const TensorType> types);
  // The long tail: one row of ir/opaque_ops.cc.
  std::vector<ValueId> opaque(Operation operation, std::vector<ValueId> inputs);

  ValueId constant(TensorType type, SharedBytes bytes);
  ValueId scalar(double value, DType dtype);         // rank 0, rounded to dtype
  ValueId scalar_int(int64_t value, DType dtype);    // rank 0, wraps like Cast
  ValueId ints(const std::vector<int64_t>& values);  // i64[n]
  // `shape` filled with one value: a Broadcast, whatever its size.
  ValueId filled(double value, const TensorType& type);

  ValueId apply(ScalarFn fn, std::vector<ValueId> arguments);
  ValueId add(ValueId a, ValueId b) { return apply(ScalarFn::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return apply(ScalarFn::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return apply(ScalarFn::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return apply(ScalarFn::kDiv, {a, b}); }
  ValueId where(ValueId condition, ValueId a, ValueId b) {
    return apply(ScalarFn::kWhere, {condition, a, b});
  }

  ValueId cast(ValueId x, DType to, bool saturate = true);
  ValueId reduce(ReduceFn fn, ValueId x, std::vector<int64_t> axes, bool keep_dims = true);
  // Sum over the axes divided by their extent; computed in f32 at least for narrow floats.
  ValueId mean(ValueId x, std::vector<int64_t> axes, bool keep_dims = true);
  ValueId transpose(ValueId x, std::vector<int64_t> perm);
  ValueId reshape(ValueId x, Shape shape);
  ValueId squeeze(ValueId x, std::vector<int64_t> axes);    // sorted, non-negative, of extent 1
  ValueId unsqueeze(ValueId x, std::vector<int64_t> axes);  // sorted, of the output's rank
  ValueId broadcast(ValueId x, Shape shape);
  ValueId slice(ValueId x, std::vector<int64_t> starts, std::vector<int64_t> sizes,
                std::vector<int64_t> steps = {});
  ValueId slice_axis(ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
  ValueId pad(ValueId x, std::vector<int64_t> before, std::vector<int64_t> after, ValueId value);
  ValueId concat(std::vector<ValueId> parts, int64_t axis);
  ValueId gather(ValueId x, ValueId indices, int64_t axis);
  ValueId matmul(ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false);
  ValueId softmax(ValueId x, std::vector<int64_t> axes);  // in f32 at least; back in x's dtype

  // The value's bytes if it is a constant or computed from constants alone.
  std::optional<HostTensor> constant_of(ValueId value);

 private:
  bool check_sizes(std::span<const TensorType> types);
  void remember(std::string message, ErrorCode code = ErrorCode::kInvalidArgument);
  std::optional<std::vector<ValueId>> fold(const ir::Op& op, const std::vector<ValueId>& inputs);

  ir::Graph* graph_;
  Constants* constants_;
  std::string name_;
  std::vector<std::string> origins_;
  std::optional<Error> error_;
};

// f16, bf16 and 8-bit floats are computed in f32; others in their own type.
DType compute_dtype(DType dtype);

}  // namespace kiln::onnx_import
