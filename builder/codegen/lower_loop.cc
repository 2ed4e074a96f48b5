#include "builder/codegen/lower_loop.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "builder/codegen/index_algebra.h"
#include "builder/codegen/iteration_space.h"
#include "builder/codegen/normalize_loop.h"
#include "formats/loop_ir/analysis.h"

namespace kiln::codegen {
namespace {

using loop::Bound;
using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

constexpr size_t kMaxExprs = 2048;
constexpr int kMaxRestarts = 64;

Error refuse(std::string reason) { return {ErrorCode::kUnsupported, std::move(reason)}; }

// Where a value is read: at one flat row-major index, or at one index an axis.
struct Place {
  bool is_flat = false;
  std::vector<IndexMap> index;
  friend bool operator==(const Place&, const Place&) = default;
};

Place at_axes(std::vector<IndexMap> axes) { return {false, std::move(axes)}; }
Place at_flat(IndexMap flat) { return {true, {std::move(flat)}}; }

// One attempt at lowering over a given space. A value is lowered where its readers ask for it, so
// views cost nothing; asking again at the same place yields the same expr.
class Attempt {
 public:
  Attempt(const ir::Graph& body, const IterationSpace& space, bool allow_cuts)
      : body_(body), space_(space), allow_cuts_(allow_cuts), lowered_(body.value_count()) {
    kernel_.dims = space.dims();
    for (size_t d = 0; d < kernel_.dims.size(); ++d) {
      if (kernel_.dims[d].reduced && kernel_.dims[d].extent != 1) reduced_ |= DimSet{1} << d;
    }
  }

  // On failure, what must change in the space before the next attempt; nothing if it is final.
  std::optional<Cut> cut;
  std::vector<uint32_t> found_reduced;
  std::optional<Shape> missing_reduced;

  Result<loop::LoopKernel> run(std::span<const size_t> output_order) {
    if (kernel_.dims.size() > loop::kMaxDims) return refuse("needs more than 24 dims");
    for (const ir::ValueId input : body_.inputs()) {
      kernel_.buffers.push_back({body_.type(input).dtype, body_.type(input).elements(), false});
    }
    std::vector<Expr> stores(body_.outputs().size());
    for (const size_t o : output_order) {
      KILN_ASSIGN_OR_RETURN(stores[o], lower_output(o, o == output_order[0]));
    }
    for (size_t o = 0; o < stores.size(); ++o) {
      const TensorType& type = body_.type(body_.outputs()[o]);
      kernel_.buffers.push_back({type.dtype, type.elements(), true});
      kernel_.exprs.push_back(std::move(stores[o]));
    }
    return std::move(kernel_);
  }

 private:
  struct Lowered {
    Place place;
    std::vector<Bound> bounds;
    ExprId expr;
  };

  int64_t points(bool reduced_only, bool parallel_only) const {
    int64_t count = 1;
    for (const loop::Dim& dim : kernel_.dims) {
      if ((reduced_only && !dim.reduced) || (parallel_only && dim.reduced)) continue;
      count *= dim.extent;
    }
    return count;
  }

  std::string name_of(ir::ValueId id) const {
    const ir::Value& value = body_.value(id);
    const bool unnamed = value.name.empty() && value.producer != ir::kNoNode;
    return unnamed ? body_.node(value.producer).name : value.name;
  }

  // The node whose result holds the same elements in another order or shape, if there is one.
  const ir::Node* reordering_producer(ir::ValueId id) const {
    const ir::NodeId producer = body_.value(id).producer;
    if (producer == ir::kNoNode) return nullptr;
    const ir::Node& node = body_.node(producer);
    const bool reorders = std::holds_alternative<ir::Transpose>(node.op) ||
                          std::holds_alternative<ir::Reshape>(node.op);
    return reorders ? &node : nullptr;
  }

  // Where the space's own point is found in an output that reorders a tensor of the space's shape;
  // nullopt if it is no such output.
  Result<std::optional<Place>> reordered_place(ir::ValueId output) {
    std::vector<const ir::Node*> chain, used;
    for (ir::ValueId id = output; const ir::Node* node = reordering_producer(id);) {
      chain.push_back(node);
      id = node->inputs[0];
      if (body_.type(id).shape == space_.shape()) used = chain;
    }
    if (used.empty()) return std::optional<Place>();
    Place place = at_axes(space_.axes());
    for (size_t i = used.size(); i-- > 0;) {
      const Shape& from = body_.type(used[i]->inputs[0]).shape;
      if (const auto* transpose = std::get_if<ir::Transpose>(&used[i]->op)) {
        KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, from));
        std::vector<IndexMap> permuted;
        for (const int64_t axis : transpose->perm) {
          permuted.push_back(axes[static_cast<size_t>(axis)]);
        }
        place = at_axes(std::move(permuted));
      } else {
        place = at_flat(flat_of(place, from));
      }
    }
    return std::optional<Place>(std::move(place));
  }

  Result<Expr> lower_output(size_t o, bool decides_space) {
    const ir::ValueId value = body_.outputs()[o];
    const TensorType& type = body_.type(value);
    Place place;
    std::optional<Place> reordered;
    if (!decides_space) {
      KILN_ASSIGN_OR_RETURN(reordered, reordered_place(value));
    }
    if (reordered) {
      place = *std::move(reordered);
    } else if (type.shape == space_.shape()) {
      place = at_axes(space_.axes());
    } else if (type.elements() == points(false, false)) {
      place = at_flat(space_.flat_over_all());
    } else if (type.elements() == points(false, true)) {
      place = at_flat(space_.flat(false));
    } else {
      return refuse("output '" + name_of(value) + "' has " + std::to_string(type.elements()) +
                    " elements and the loop " + std::to_string(points(false, false)) + " points");
    }
    KILN_ASSIGN_OR_RETURN(const ExprId expr, lower(value, place));
    Expr store;
    store.kind = Kind::kStore;
    store.dtype = type.dtype;
    store.args = {expr};
    store.saturate = false;  // casts have rounded; an infinity that was loaded stays one
    store.buffer = static_cast<uint32_t>(body_.inputs().size() + o);
    store.map = place.is_flat ? place.index[0] : flatten(place.index, type.shape);
    return store;
  }

  // --- exprs ---

  Result<ExprId> emit(Expr expr) {
    if (kernel_.exprs.size() >= kMaxExprs) {
      return refuse("the body expands to more than " + std::to_string(kMaxExprs) + " exprs");
    }
    const auto same = std::ranges::find(kernel_.exprs, expr);
    if (same != kernel_.exprs.end()) return static_cast<ExprId>(same - kernel_.exprs.begin());
    DimSet varying = loop::dims_of(expr.map);
    for (const Bound& bound : expr.bounds) varying |= loop::dims_of(bound.map);
    for (const auto& gather : expr.map.gathers) varying |= varying_[gather.index];
    for (const ExprId arg : expr.args) varying |= varying_[arg];
    if (expr.kind == Kind::kReduce) varying &= ~reduced_;
    kernel_.exprs.push_back(std::move(expr));
    varying_.push_back(varying);
    return static_cast<ExprId>(kernel_.exprs.size() - 1);
  }

  Result<ExprId> constant(DType dtype, uint64_t bits) {
    Expr expr;
    expr.dtype = dtype;
    expr.constant = bits;
    return emit(std::move(expr));
  }

  Result<ExprId> iota(const IndexMap& map) {
    if (!map.gathers.empty()) return refuse("a gathered index is compared with a bound");
    Expr expr;
    expr.kind = Kind::kIota;
    expr.dtype = DType::kI64;
    expr.map = map;
    return emit(std::move(expr));
  }

  Result<ExprId> apply(ScalarFn fn, DType dtype, std::vector<ExprId> args) {
    Expr expr;
    expr.kind = Kind::kApply;
    expr.fn = fn;
    expr.dtype = dtype;
    expr.args = std::move(args);
    return emit(std::move(expr));
  }

  // map `fn` limit, as a bool.
  Result<ExprId> compare(ScalarFn fn, const IndexMap& map, int64_t limit) {
    KILN_ASSIGN_OR_RETURN(const ExprId index, iota(map));
    KILN_ASSIGN_OR_RETURN(const ExprId other, constant(DType::kI64, static_cast<uint64_t>(limit)));
    return apply(fn, DType::kBool, {index, other});
  }

  // --- places ---

  DimSet varying(const IndexMap& map) const {
    DimSet set = loop::dims_of(map);
    for (const auto& gather : map.gathers) set |= varying_[gather.index];
    return set;
  }

  Result<Division> divided(const IndexMap& map, int64_t divisor) {
    auto division = divide(map, divisor, kernel_);
    if (division && !division->cut) return std::move(*division);
    if (division && !allow_cuts_) return std::move(*division);
    if (division) cut = division->cut;
    return refuse("a reshape has no normal form: an index does not divide by " +
                  std::to_string(divisor));
  }

  Result<std::vector<IndexMap>> unflatten(const IndexMap& flat, const Shape& shape) {
    std::vector<IndexMap> axes(shape.size());
    if (element_count(shape) == 0) return axes;
    size_t outermost = 0;
    while (outermost < shape.size() && shape[outermost] == 1) ++outermost;
    IndexMap rest = flat;
    for (size_t a = shape.size(); a-- > outermost;) {
      if (shape[a] == 1) continue;
      if (a == outermost) {
        axes[a] = rest;
        break;
      }
      KILN_ASSIGN_OR_RETURN(Division division, divided(rest, shape[a]));
      axes[a] = std::move(division.remainder);
      rest = std::move(division.quotient);
    }
    return axes;
  }

  Result<std::vector<IndexMap>> axes_of(const Place& place, const Shape& shape) {
    if (!place.is_flat) return place.index;
    return unflatten(place.index[0], shape);
  }

  IndexMap flat_of(const Place& place, const Shape& shape) const {
    return place.is_flat ? place.index[0] : flatten(place.index, shape);
  }

  // Where an operand of shape `from` is read for the point `place` of a result of shape `to`.
  Result<Place> broadcast_place(const Place& place, const Shape& to, const Shape& from) {
    if (from == to) return place;
    if (element_count(from) == 1) return at_axes(std::vector<IndexMap>(from.size()));
    if (place.is_flat && element_count(from) == element_count(to)) return place;
    KILN_ASSIGN_OR_RETURN(auto axes, axes_of(place, to));
    axes.erase(axes.begin(), axes.end() - static_cast<int64_t>(from.size()));
    for (size_t a = 0; a < from.size(); ++a) {
      if (from[a] == 1) axes[a] = {};
    }
    return at_axes(std::move(axes));
  }

  // --- values ---

  Result<ExprId> lower(ir::ValueId value, const Place& place) {
    std::vector<Lowered>& known = lowered_[ir::index_of(value)];
    for (const Lowered& entry : known) {
      if (entry.place == place && entry.bounds == bounds_) return entry.expr;
    }
    auto made = lower_new(value, place);
    if (!made.ok()) return made;
    lowered_[ir::index_of(value)].push_back({place, bounds_, *made});
    return made;
  }

  Result<ExprId> lower_new(ir::ValueId id, const Place& place) {
    const ir::Value& value = body_.value(id);
    if (value.constant) return lower_constant(value);
    // No point reads an element of an empty tensor.
    if (value.type.elements() == 0) return constant(value.type.dtype, 0);
    if (value.producer == ir::kNoNode) return lower_input(id, place);
    const ir::Node& node = body_.node(value.producer);
    return std::visit([&](const auto& op) { return lower_op(op, node, value.type, place); },
                      node.op);
  }

  Result<ExprId> lower_constant(const ir::Value& value) {
    if (value.type.elements() != 1) {
      return refuse("constant '" + value.name + "' of " + std::to_string(value.type.elements()) +
                    " elements inside the body; pass it as an input");
    }
    uint64_t bits = 0;
    std::memcpy(&bits, value.constant->data(), std::min<size_t>(8, value.constant->size()));
    if (bits_of(value.type.dtype) == 4) bits &= 0xF;
    return constant(value.type.dtype, bits);
  }

  Result<ExprId> lower_input(ir::ValueId id, const Place& place) {
    const auto inputs = body_.inputs();
    const auto at = std::ranges::find(inputs, id);
    if (at == inputs.end()) return refuse("'" + body_.value(id).name + "' has no producer");
    Expr expr;
    expr.kind = Kind::kLoad;
    expr.dtype = body_.type(id).dtype;
    expr.buffer = static_cast<uint32_t>(at - inputs.begin());
    expr.map = flat_of(place, body_.type(id).shape);
    // Where a bound that concerns other dims fails, the value is not used, but it is safe to read.
    std::ranges::copy_if(bounds_, std::back_inserter(expr.bounds), [&](const Bound& bound) {
      return (loop::dims_of(bound.map) & loop::dims_of(expr.map)) != 0;
    });
    return emit(std::move(expr));
  }

  template <class Op>
  Result<ExprId> lower_op(const Op&, const ir::Node& node, const TensorType&, const Place&) {
    return refuse("'" + node.name + "' is no pointwise operation, reduction or view");
  }

  Result<ExprId> lower_op(const ir::Pointwise& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    std::vector<ExprId> args;
    for (const ir::ValueId input : node.inputs) {
      KILN_ASSIGN_OR_RETURN(const Place from,
                            broadcast_place(place, type.shape, body_.type(input).shape));
      KILN_ASSIGN_OR_RETURN(const ExprId arg, lower(input, from));
      args.push_back(arg);
    }
    return apply(op.fn, type.dtype, std::move(args));
  }

  Result<ExprId> lower_op(const ir::Cast& op, const ir::Node& node, const TensorType&,
                          const Place& place) {
    KILN_ASSIGN_OR_RETURN(const ExprId arg, lower(node.inputs[0], place));
    Expr expr;
    expr.kind = Kind::kCast;
    expr.dtype = op.to;
    expr.saturate = op.saturate;
    expr.args = {arg};
    return emit(std::move(expr));
  }

  Result<ExprId> lower_op(const ir::Transpose& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
    std::vector<IndexMap> from(axes.size());
    for (size_t a = 0; a < axes.size(); ++a) from[static_cast<size_t>(op.perm[a])] = axes[a];
    return lower(node.inputs[0], at_axes(std::move(from)));
  }

  Result<ExprId> lower_op(const ir::Reshape&, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    return lower(node.inputs[0], at_flat(flat_of(place, type.shape)));
  }

  Result<ExprId> lower_op(const ir::Broadcast&, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    KILN_ASSIGN_OR_RETURN(const Place from,
                          broadcast_place(place, type.shape, body_.type(node.inputs[0]).shape));
    return lower(node.inputs[0], from);
  }

  Result<ExprId> lower_op(const ir::Slice& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    KILN_ASSIGN_OR_RETURN(auto axes, axes_of(place, type.shape));
    for (size_t a = 0; a < axes.size(); ++a) {
      const int64_t step = op.sizes[a] > 1 ? op.steps[a] : 1;
      axes[a] = shifted(scaled(axes[a], step), op.starts[a]);
    }
    return lower(node.inputs[0], at_axes(std::move(axes)));
  }

  static std::vector<Bound> joined(std::vector<Bound> bounds, const std::vector<Bound>& more) {
    for (const Bound& bound : more) {
      if (std::ranges::find(bounds, bound) == bounds.end()) bounds.push_back(bound);
    }
    return bounds;
  }

  // Lowers with `more` bounds in force besides those that already are.
  Result<ExprId> lower_within(ir::ValueId value, const Place& place,
                              const std::vector<Bound>& more) {
    const std::vector<Bound> outer = bounds_;
    bounds_ = joined(bounds_, more);
    auto result = lower(value, place);
    bounds_ = outer;
    return result;
  }

  // Whether index `map` reaches below or above [0, extent) at some point.
  struct Overhang {
    bool below = true, above = true;
  };
  Result<Overhang> overhang(const IndexMap& map, int64_t extent) {
    if (!map.gathers.empty()) return refuse("a gathered index is compared with a bound");
    const auto range = loop::range_of(map, kernel_);
    if (!range) return refuse("an index passes 2^61");
    return Overhang{range->low < 0, range->high >= extent};
  }

  Result<ExprId> lower_op(const ir::Pad& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    const TensorType& from = body_.type(node.inputs[0]);
    if (from.elements() == 0) return lower_scalar(node.inputs[1]);
    KILN_ASSIGN_OR_RETURN(auto axes, axes_of(place, type.shape));
    std::vector<Bound> inside;
    std::optional<ExprId> condition;
    const auto require = [&](ScalarFn fn, const IndexMap& map, int64_t limit) -> Result<> {
      KILN_ASSIGN_OR_RETURN(ExprId test, compare(fn, map, limit));
      if (condition) {
        KILN_ASSIGN_OR_RETURN(test, apply(ScalarFn::kAnd, DType::kBool, {*condition, test}));
      }
      condition = test;
      return Ok();
    };
    for (size_t a = 0; a < axes.size(); ++a) {
      if (op.before[a] == 0 && op.after[a] == 0) continue;
      axes[a] = shifted(axes[a], -op.before[a]);
      KILN_ASSIGN_OR_RETURN(const Overhang out, overhang(axes[a], from.shape[a]));
      if (out.below) KILN_RETURN_IF_ERROR(require(ScalarFn::kGreaterEqual, axes[a], 0));
      if (out.above) KILN_RETURN_IF_ERROR(require(ScalarFn::kLess, axes[a], from.shape[a]));
      if (out.below || out.above) inside.push_back({axes[a], 0, from.shape[a]});
    }
    KILN_ASSIGN_OR_RETURN(const ExprId inner,
                          lower_within(node.inputs[0], at_axes(std::move(axes)), inside));
    if (!condition) return inner;
    KILN_ASSIGN_OR_RETURN(const ExprId fill, lower_scalar(node.inputs[1]));
    return select_or_fill(*condition, inner, fill, inside);
  }

  // A load that carries exactly the bounds of this pad can fill by itself.
  Result<ExprId> select_or_fill(ExprId condition, ExprId inner, ExprId fill,
                                const std::vector<Bound>& inside) {
    const DType dtype = kernel_.exprs[inner].dtype;
    Expr load = kernel_.exprs[inner];
    const Expr& value = kernel_.exprs[fill];
    if (load.kind == Kind::kLoad && load.bounds == joined(bounds_, inside) &&
        value.kind == Kind::kConstant) {
      load.constant = value.constant;
      return emit(std::move(load));
    }
    return apply(ScalarFn::kWhere, dtype, {condition, inner, fill});
  }

  Result<ExprId> lower_scalar(ir::ValueId value) {
    return lower(value, at_axes(std::vector<IndexMap>(body_.type(value).shape.size())));
  }

  Result<ExprId> lower_op(const ir::Concat& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    const auto axis = static_cast<size_t>(op.axis);
    KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
    int64_t end = type.shape[axis];
    std::optional<ExprId> result;
    // From the last piece to the first: where(index < end of piece, piece, the ones after it).
    for (size_t i = node.inputs.size(); i-- > 0;) {
      const int64_t extent = body_.type(node.inputs[i]).shape[axis];
      const int64_t start = end - extent;
      const int64_t piece_end = end;
      end = start;
      std::vector<IndexMap> from = axes;
      from[axis] = shifted(axes[axis], -start);
      KILN_ASSIGN_OR_RETURN(const Overhang out, overhang(from[axis], extent));
      const auto range = loop::range_of(from[axis], kernel_);
      if (extent == 0 || range->high < 0 || range->low >= extent) continue;
      std::vector<Bound> inside;
      if (out.below || out.above) inside.push_back({from[axis], 0, extent});
      KILN_ASSIGN_OR_RETURN(const ExprId piece,
                            lower_within(node.inputs[i], at_axes(std::move(from)), inside));
      if (!result) {
        result = piece;
        continue;
      }
      KILN_ASSIGN_OR_RETURN(const ExprId test, compare(ScalarFn::kLess, axes[axis], piece_end));
      KILN_ASSIGN_OR_RETURN(result, apply(ScalarFn::kWhere, type.dtype, {test, piece, *result}));
    }
    if (!result) return constant(type.dtype, 0);  // the place lies outside: never read
    return *result;
  }

  Result<ExprId> lower_op(const ir::Gather& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    const Shape& data = body_.type(node.inputs[0]).shape;
    if (element_count(data) == 0) return refuse("'" + node.name + "' gathers from an empty tensor");
    const Shape& indices = body_.type(node.inputs[1]).shape;
    KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
    const auto middle = axes.begin() + op.axis;
    const auto after = middle + static_cast<int64_t>(indices.size());
    KILN_ASSIGN_OR_RETURN(const ExprId index, lower(node.inputs[1], at_axes({middle, after})));
    std::vector<IndexMap> from(axes.begin(), middle);
    KILN_ASSIGN_OR_RETURN(IndexMap gathered,
                          gather_index(index, data[static_cast<size_t>(op.axis)]));
    from.push_back(std::move(gathered));
    from.insert(from.end(), after, axes.end());
    return lower(node.inputs[0], at_axes(std::move(from)));
  }

  Result<IndexMap> gather_index(ExprId index, int64_t extent) {
    const DType dtype = kernel_.exprs[index].dtype;
    if (kernel_.exprs[index].kind == Kind::kConstant) {
      const uint64_t bits = kernel_.exprs[index].constant;
      const int64_t value =
          dtype == DType::kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
      if (value < -extent || value >= extent) {
        return Error{ErrorCode::kInvalidArgument, "gather of element " + std::to_string(value) +
                                                      " of " + std::to_string(extent)};
      }
      return constant_index(value < 0 ? value + extent : value);
    }
    KILN_ASSIGN_OR_RETURN(const ExprId zero, constant(dtype, 0));
    KILN_ASSIGN_OR_RETURN(const ExprId count, constant(dtype, static_cast<uint64_t>(extent)));
    KILN_ASSIGN_OR_RETURN(const ExprId negative,
                          apply(ScalarFn::kLess, DType::kBool, {index, zero}));
    KILN_ASSIGN_OR_RETURN(const ExprId wrapped, apply(ScalarFn::kAdd, dtype, {index, count}));
    KILN_ASSIGN_OR_RETURN(const ExprId positive,
                          apply(ScalarFn::kWhere, dtype, {negative, wrapped, index}));
    return IndexMap{0, {}, {{positive, extent, 1}}};
  }

  // --- reductions ---

  Result<ExprId> lower_op(const ir::Reduce& op, const ir::Node& node, const TensorType& type,
                          const Place& place) {
    const TensorType& from = body_.type(node.inputs[0]);
    KILN_ASSIGN_OR_RETURN(const auto axes, axes_of(place, type.shape));
    Shape reduced_shape;
    DimSet needed = 0;
    std::vector<IndexMap> index(from.shape.size());
    size_t out = 0;
    for (size_t a = 0; a < from.shape.size(); ++a) {
      if (std::ranges::binary_search(op.axes, static_cast<int64_t>(a))) {
        reduced_shape.push_back(from.shape[a]);
        if (op.keep_dims) ++out;
        continue;
      }
      index[a] = axes[out++];
      needed |= varying(index[a]);
    }
    if (element_count(reduced_shape) == 1) {
      return lower(node.inputs[0], at_axes(std::move(index)));
    }
    KILN_RETURN_IF_ERROR(check_repeats(needed, type.elements()));
    KILN_RETURN_IF_ERROR(check_reduced_dims(needed, reduced_shape));
    KILN_ASSIGN_OR_RETURN(const auto inner, reduced_index(reduced_shape));
    for (size_t i = 0; i < op.axes.size(); ++i) index[static_cast<size_t>(op.axes[i])] = inner[i];
    return emit_reduce(op, node.inputs[0], at_axes(std::move(index)), type.dtype);
  }

  Result<ExprId> emit_reduce(const ir::Reduce& op, ir::ValueId input, const Place& place,
                             DType dtype) {
    // Bounds on the reduced dims say which results are asked for, not what is summed.
    std::vector<Bound> outer = bounds_;
    std::erase_if(bounds_, [&](const Bound& b) { return loop::dims_of(b.map) & reduced_; });
    auto arg = lower(input, place);
    std::swap(bounds_, outer);
    if (!arg.ok()) return arg;
    Expr expr;
    expr.kind = Kind::kReduce;
    expr.dtype = dtype;
    expr.reduce_fn = op.fn;
    if (dtype == DType::kBool && op.fn == ReduceFn::kMax) expr.reduce_fn = ReduceFn::kAny;
    if (dtype == DType::kBool && op.fn == ReduceFn::kMin) expr.reduce_fn = ReduceFn::kAll;
    expr.args = {*arg};
    return emit(std::move(expr));
  }

  bool has_reduced_dims() const {
    return std::ranges::any_of(kernel_.dims, [](const loop::Dim& dim) { return dim.reduced; });
  }

  // A sum that more points ask for than there are sums would be computed again and again.
  Result<> check_repeats(DimSet needed, int64_t results) {
    int64_t asked = 1;
    for (uint32_t d = 0; d < kernel_.dims.size(); ++d) {
      if (needed >> d & 1) asked *= kernel_.dims[d].extent;
    }
    if (asked <= results) return Ok();
    return refuse("a reduction with " + std::to_string(results) + " results is needed at " +
                  std::to_string(asked) + " points");
  }

  // All reductions of a kernel run over the same dims: those that no result of one varies with.
  Result<> check_reduced_dims(DimSet needed, const Shape& shape) {
    const int64_t count = element_count(shape);
    if (needed & reduced_) {
      return refuse("a reduction is needed at every point of another's reduced axes");
    }
    if (has_reduced_dims()) {
      if (points(true, false) == count) return Ok();
      return refuse("reductions over " + std::to_string(points(true, false)) + " and " +
                    std::to_string(count) + " elements");
    }
    int64_t free = 1;
    std::vector<uint32_t> dims;
    for (uint32_t d = 0; d < kernel_.dims.size(); ++d) {
      if ((needed >> d & 1) || kernel_.dims[d].extent == 1) continue;
      free *= kernel_.dims[d].extent;
      dims.push_back(d);
    }
    if (dims.empty())
      missing_reduced = shape;
    else if (free == count)
      found_reduced = dims;
    return refuse("a reduction over " + std::to_string(count) +
                  " elements meets outputs that repeat its result " + std::to_string(free) +
                  " times");
  }

  // The index along each reduced axis.
  Result<std::vector<IndexMap>> reduced_index(const Shape& shape) {
    std::vector<IndexMap> dims;
    Shape extents, wanted;
    for (uint32_t d = 0; d < kernel_.dims.size(); ++d) {
      if (!kernel_.dims[d].reduced || kernel_.dims[d].extent == 1) continue;
      dims.push_back({0, {{d, 1, 0, 1}}, {}});
      extents.push_back(kernel_.dims[d].extent);
    }
    std::ranges::copy_if(shape, std::back_inserter(wanted), [](int64_t e) { return e != 1; });
    if (extents != wanted) return unflatten(space_.flat(true), shape);
    std::vector<IndexMap> index(shape.size());
    for (size_t a = 0, next = 0; a < shape.size(); ++a) {
      if (shape[a] != 1) index[a] = dims[next++];
    }
    return index;
  }

  const ir::Graph& body_;
  const IterationSpace& space_;
  const bool allow_cuts_;
  DimSet reduced_ = 0;
  loop::LoopKernel kernel_;
  std::vector<DimSet> varying_;                // of kernel_.exprs
  std::vector<std::vector<Lowered>> lowered_;  // by value
  std::vector<Bound> bounds_;                  // in force where we are
};

// Outputs with the most elements first, views of other values after those: the first decides about
// the space.
std::vector<size_t> by_size(const ir::Graph& body) {
  std::vector<size_t> order(body.outputs().size());
  for (size_t o = 0; o < order.size(); ++o) order[o] = o;
  std::ranges::sort(order, {}, [&](size_t o) {
    const ir::Value& value = body.value(body.outputs()[o]);
    const bool made = value.producer != ir::kNoNode;
    const bool view =
        made && (std::holds_alternative<ir::Transpose>(body.node(value.producer).op) ||
                 std::holds_alternative<ir::Reshape>(body.node(value.producer).op));
    return std::tuple(-value.type.elements(), view, o);
  });
  return order;
}

bool depends_on_reduce(const ir::Graph& body, ir::ValueId value, std::set<uint32_t>& seen) {
  if (!seen.insert(ir::index_of(value)).second) return false;
  const ir::NodeId producer = body.value(value).producer;
  if (producer == ir::kNoNode) return false;
  const ir::Node& node = body.node(producer);
  if (std::holds_alternative<ir::Reduce>(node.op)) return true;
  return std::ranges::any_of(
      node.inputs, [&](ir::ValueId input) { return depends_on_reduce(body, input, seen); });
}

// The points of the largest output; of the first reduction's input when that output has no part in
// any reduction and the others have.
IterationSpace initial_space(const ir::Graph& body, ir::ValueId largest) {
  std::set<uint32_t> seen;
  if (!depends_on_reduce(body, largest, seen)) {
    for (const ir::NodeId id : body.topological_order()) {
      const auto* reduce = std::get_if<ir::Reduce>(&body.node(id).op);
      if (reduce == nullptr) continue;
      const TensorType& from = body.type(body.node(id).inputs[0]);
      if (from.elements() != body.type(largest).elements()) break;
      IterationSpace space(from.shape);
      for (const int64_t axis : reduce->axes) space.set_reduced(static_cast<uint32_t>(axis));
      return space;
    }
  }
  return IterationSpace(body.type(largest).shape);
}

Result<loop::LoopKernel> lower_over(const ir::Graph& body, IterationSpace space,
                                    std::span<const size_t> order, bool allow_cuts) {
  for (int i = 0; i < kMaxRestarts; ++i) {
    Attempt attempt(body, space, allow_cuts);
    auto kernel = attempt.run(order);
    if (kernel.ok()) {
      normalize(*kernel);
      const auto sound = loop::verify(*kernel);
      if (!sound.ok()) return refuse(sound.error().message);
      return kernel;
    }
    if (attempt.cut) {
      space.cut(*attempt.cut);
    } else if (!attempt.found_reduced.empty()) {
      for (const uint32_t dim : attempt.found_reduced) space.set_reduced(dim);
    } else if (attempt.missing_reduced) {
      for (const int64_t extent : *attempt.missing_reduced) space.add_reduced_axis(extent);
    } else {
      return kernel;
    }
  }
  return refuse("its reshapes cut the dims too often");
}

// Keeps index arithmetic far from overflow.
Result<> check_sizes(const ir::Graph& body) {
  constexpr int64_t kMaxElements = int64_t{1} << 50;
  for (uint32_t i = 0; i < body.value_count(); ++i) {
    const ir::Value& value = body.value(ir::ValueId{i});
    const auto count = checked_element_count(value.type.shape);
    if (!count || *count > kMaxElements) {
      return refuse("'" + value.name + "' is " + to_string(value.type) + ", too large for a loop");
    }
  }
  return Ok();
}

}  // namespace
}  // namespace kiln::codegen

namespace kiln {

Result<loop::LoopKernel> lower_to_loop(const ir::Graph& body) {
  using namespace codegen;
  if (body.outputs().empty()) return refuse("the body has no output");
  KILN_RETURN_IF_ERROR(check_sizes(body));
  const std::vector<size_t> order = by_size(body);
  const ir::ValueId largest = body.outputs()[order[0]];
  const IterationSpace space = initial_space(body, largest);
  auto kernel = lower_over(body, space, order, true);
  if (kernel.ok()) return kernel;
  // Some bodies have maps with divisions, though their dims cannot be cut for all of them.
  if (auto uncut = lower_over(body, space, order, false); uncut.ok()) return uncut;
  const IterationSpace flat(Shape{body.type(largest).elements()});
  if (auto one_dim = lower_over(body, flat, order, false); one_dim.ok()) return one_dim;
  return kernel;
}

}  // namespace kiln
