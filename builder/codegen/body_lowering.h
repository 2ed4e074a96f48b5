// One attempt at lowering a body over a given iteration space. A value is lowered where its readers
// ask for it, so views cost nothing; asking again at the same place yields the same expr.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "builder/codegen/expr_writer.h"
#include "builder/codegen/index_algebra.h"
#include "builder/codegen/iteration_space.h"
#include "builder/ir/graph.h"

namespace kiln::codegen {

// Where a value is read: at one flat row-major index, or at one index an axis.
struct Place {
  bool is_flat = false;
  std::vector<loop::IndexMap> index;
  friend bool operator==(const Place&, const Place&) = default;
};

inline Place at_axes(std::vector<loop::IndexMap> axes) { return {false, std::move(axes)}; }
inline Place at_flat(loop::IndexMap flat) { return {true, {std::move(flat)}}; }

class BodyLowering {
 public:
  // The body and the space must outlive it. With `allow_cuts` a division that has no affine form
  // fails and sets `cut`.
  BodyLowering(const ir::Graph& body, const IterationSpace& space, bool allow_cuts);

  // The first output of the order decides which points there are.
  Result<loop::LoopKernel> run(std::span<const size_t> output_order);

  // On failure, what must change in the space before the next attempt; nothing if it is final.
  std::optional<Cut> cut;
  std::vector<uint32_t> found_reduced;
  std::optional<Shape> missing_reduced;

 private:
  using Bound = loop::Bound;
  using DimSet = loop::DimSet;
  using Expr = loop::Expr;
  using ExprId = loop::ExprId;
  using IndexMap = loop::IndexMap;

  struct Lowered {
    Place place;
    std::vector<Bound> bounds;
    ExprId expr;
  };

  int64_t points(bool reduced_only, bool parallel_only) const;
  std::string name_of(ir::ValueId id) const;
  // Where the space's own point is found in an output that reorders a tensor of the space's shape;
  // nullopt if it is no such output.
  Result<std::optional<Place>> reordered_place(ir::ValueId output);
  Result<Expr> lower_output(size_t o, bool decides_space);

  // lower_places.cc
  Result<Division> divided(const IndexMap& map, int64_t divisor);
  Result<std::vector<IndexMap>> unflatten(const IndexMap& flat, const Shape& shape);
  Result<std::vector<IndexMap>> axes_of(const Place& place, const Shape& shape);
  IndexMap flat_of(const Place& place, const Shape& shape) const;
  // Where an operand of shape `from` is read for the point `place` of a result of shape `to`.
  Result<Place> broadcast_place(const Place& place, const Shape& to, const Shape& from);

  Result<ExprId> lower(ir::ValueId value, const Place& place);
  Result<ExprId> lower_new(ir::ValueId id, const Place& place);
  Result<ExprId> lower_constant(const ir::Value& value);
  Result<ExprId> lower_input(ir::ValueId id, const Place& place);
  Result<ExprId> lower_scalar(ir::ValueId value);

  template <class Op>
  Result<ExprId> lower_op(const Op&, const ir::Node& node, const TensorType&, const Place&) {
    return refuse("'" + node.name + "' is no pointwise operation, reduction or view");
  }
  Result<ExprId> lower_op(const ir::Pointwise& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<ExprId> lower_op(const ir::Cast& op, const ir::Node& node, const TensorType&,
                          const Place& place);
  Result<ExprId> lower_op(const ir::Transpose& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<ExprId> lower_op(const ir::Reshape&, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<ExprId> lower_op(const ir::Broadcast&, const ir::Node& node, const TensorType& type,
                          const Place& place);

  // lower_movement.cc
  Result<ExprId> lower_op(const ir::Slice& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  // Lowers with `more` bounds in force besides those that already are.
  Result<ExprId> lower_within(ir::ValueId value, const Place& place,
                              const std::vector<Bound>& more);
  Result<ExprId> lower_op(const ir::Pad& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  // A load that carries exactly the bounds of this pad can fill by itself.
  Result<ExprId> select_or_fill(ExprId condition, ExprId inner, ExprId fill,
                                const std::vector<Bound>& inside);
  Result<ExprId> select(ExprId condition, ExprId a, ExprId b);
  Result<ExprId> lower_op(const ir::Concat& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<ExprId> lower_op(const ir::Gather& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<IndexMap> gather_index(ExprId index, int64_t extent);

  // lower_reduction.cc
  Result<ExprId> lower_op(const ir::Reduce& op, const ir::Node& node, const TensorType& type,
                          const Place& place);
  Result<ExprId> emit_reduce(const ir::Reduce& op, ir::ValueId input, const Place& place,
                             DType dtype);
  bool has_reduced_dims() const;
  // A sum that more points ask for than there are sums would be computed again and again.
  Result<> check_repeats(DimSet needed, int64_t results);
  // All reductions of a kernel run over the same dims: those that no result of one varies with.
  Result<> check_reduced_dims(DimSet needed, const Shape& shape);
  // The index along each reduced axis.
  Result<std::vector<IndexMap>> reduced_index(const Shape& shape);

  const ir::Graph& body_;
  const IterationSpace& space_;
  const bool allow_cuts_;
  ExprWriter write_;
  std::vector<std::vector<Lowered>> lowered_;  // by value
  std::vector<Bound> bounds_;                  // in force where we are
};

}  // namespace kiln::codegen
