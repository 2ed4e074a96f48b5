// BodyLowering: the outputs, and what each point of the space stores to them.
#include "builder/codegen/body_lowering.h"

namespace kiln::codegen {

using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using Kind = loop::Expr::Kind;

namespace {

// The node whose result holds the same elements in another order or shape, if there is one.
const ir::Node* reordering_producer(const ir::Graph& body, ir::ValueId id) {
  const ir::NodeId producer = body.value(id).producer;
  if (producer == ir::kNoNode) return nullptr;
  const ir::Node& node = body.node(producer);
  const bool reorders = std::holds_alternative<ir::Transpose>(node.op) ||
                        std::holds_alternative<ir::Reshape>(node.op);
  return reorders ? &node : nullptr;
}

}  // namespace

Result<loop::LoopKernel> BodyLowering::run(std::span<const size_t> output_order) {
  if (write_.kernel.dims.size() > loop::kMaxDims) return refuse("needs more than 24 dims");
  for (const ir::ValueId input : body_.inputs()) {
    write_.kernel.buffers.push_back({body_.type(input).dtype, body_.type(input).elements(), false});
  }
  std::vector<Expr> stores(body_.outputs().size());
  for (const size_t o : output_order) {
    KILN_ASSIGN_OR_RETURN(stores[o], lower_output(o, o == output_order[0]));
  }
  for (size_t o = 0; o < stores.size(); ++o) {
    const TensorType& type = body_.type(body_.outputs()[o]);
    write_.kernel.buffers.push_back({type.dtype, type.elements(), true});
    write_.kernel.exprs.push_back(std::move(stores[o]));
  }
  return std::move(write_.kernel);
}

int64_t BodyLowering::points(bool reduced_only, bool parallel_only) const {
  int64_t count = 1;
  for (const loop::Dim& dim : write_.kernel.dims) {
    if ((reduced_only && !dim.reduced) || (parallel_only && dim.reduced)) continue;
    count *= dim.extent;
  }
  return count;
}

std::string BodyLowering::name_of(ir::ValueId id) const {
  const ir::Value& value = body_.value(id);
  const bool unnamed = value.name.empty() && value.producer != ir::kNoNode;
  return unnamed ? body_.node(value.producer).name : value.name;
}

Result<std::optional<Place>> BodyLowering::reordered_place(ir::ValueId output) {
  std::vector<const ir::Node*> chain, used;
  for (ir::ValueId id = output; const ir::Node* node = reordering_producer(body_, id);) {
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

Result<Expr> BodyLowering::lower_output(size_t o, bool decides_space) {
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

}  // namespace kiln::codegen
