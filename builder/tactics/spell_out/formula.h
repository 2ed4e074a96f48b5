// Formula: writes one node of a graph as a formula of others.
#pragma once
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln {

// Appends nodes and remembers the first failure, so that a formula reads as one.
class Formula {
 public:
  using ValueId = ir::ValueId;

  // New nodes get the name and the origins of `node`.
  Formula(ir::Graph& graph, const ir::Node& node) : graph_(graph), node_(node) {}

  ValueId emit(ir::Op op, std::vector<ValueId> inputs);
  ValueId apply(ScalarFn fn, std::vector<ValueId> inputs) {
    return emit(ir::Pointwise{fn}, std::move(inputs));
  }
  ValueId reduce(ReduceFn fn, int64_t axis, ValueId x) {  // keeps the axis
    return emit(ir::Reduce{fn, {axis}, true}, {x});
  }
  ValueId cast(ValueId x, DType to) { return type(x).dtype == to ? x : emit(ir::Cast{to}, {x}); }
  ValueId reshape(ValueId x, Shape shape);
  // Elements [start, start + size * step) of one axis.
  ValueId slice(ValueId x, size_t axis, int64_t start, int64_t size, int64_t step = 1);

  template <class T>
  ValueId constant(DType dtype, Shape shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return constant_bytes({dtype, std::move(shape)}, {bytes.begin(), bytes.end()});
  }
  ValueId constant_bytes(TensorType type, std::vector<std::byte> bytes);
  // One value in any numeric type.
  ValueId number(DType dtype, double value);
  ValueId lowest(DType dtype);  // the least value, -inf for floats
  ValueId highest(DType dtype);
  // An index of an axis as it counts from the start: negative ones count from the end.
  ValueId wrapped(ValueId index, int64_t extent);
  ValueId plus(ValueId sum, ValueId index, int64_t stride);  // sum + index * stride; i64
  // 0, 1, ... along `axis` of a tensor of that rank whose other extents are 1; i64.
  ValueId iota(size_t rank, size_t axis, int64_t extent);

  const TensorType& type(ValueId x) const { return graph_.type(x); }
  // The formula cannot be written; `reason` is one line.
  void refuse(std::string reason);
  const std::optional<Error>& error() const { return error_; }

 private:
  ir::Graph& graph_;
  const ir::Node& node_;
  std::optional<Error> error_;
};

// The formulas of a node's outputs; empty keeps the node as it is.
using WriteFormula = std::function<std::vector<ir::ValueId>(
    Formula& formula, const ir::Node& node, const std::vector<ir::ValueId>& inputs)>;

// The body with nodes replaced by formulas. Fails with the first formula that does.
Result<ir::Graph> write_formulas(const ir::Graph& body, const WriteFormula& write);

}  // namespace kiln
