// Gathers whose index is a position in the whole input: it is computed element by element.
#include <algorithm>

#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::ValueId;

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t a = shape.size(); a-- > 1;) strides[a - 1] = strides[a] * shape[a];
  return strides;
}

}  // namespace

Values write_gather_elements(Formula& f, const Operation& op, const Values& in,
                             const TensorType& out) {
  const TensorType type = f.type(in[0]);
  const auto axis = static_cast<size_t>(op.get_int("axis", 0));
  if (axis >= type.shape.size() || type.elements() == 0) {
    f.refuse("a gather from nothing");
    return {};
  }
  const auto strides = strides_of(type.shape);
  ValueId place = f.number(DType::kI64, 0);
  for (size_t a = 0; a < type.shape.size(); ++a) {
    const ValueId index = a == axis ? f.wrapped(f.cast(in[1], DType::kI64), type.shape[axis])
                                    : f.iota(type.shape.size(), a, out.shape[a]);
    place = f.plus(place, index, strides[a]);
  }
  return {f.emit(ir::Gather{0}, {f.reshape(in[0], {type.elements()}), place})};
}

Values write_gather_nd(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  const TensorType type = f.type(in[0]), indices = f.type(in[1]);
  const auto batch = static_cast<size_t>(op.get_int("batch_dims", 0));
  const auto depth = static_cast<size_t>(indices.shape.back());
  if (type.elements() == 0 || out.elements() == 0) {
    f.refuse("a gather from nothing");
    return {};
  }
  const ValueId index = f.cast(in[1], DType::kI64);
  Shape places(indices.shape.begin(), indices.shape.end() - 1);
  Shape outer(type.shape.begin(), type.shape.begin() + static_cast<int64_t>(batch + depth));
  const auto strides = strides_of(outer);
  ValueId place = f.number(DType::kI64, 0);
  for (size_t b = 0; b < batch; ++b) {
    place = f.plus(place, f.iota(places.size(), b, places[b]), strides[b]);
  }
  for (size_t d = 0; d < depth; ++d) {
    const ValueId column =
        f.reshape(f.slice(index, places.size(), static_cast<int64_t>(d), 1), places);
    place = f.plus(place, f.wrapped(column, outer[batch + d]), strides[batch + d]);
  }
  Shape flat = {element_count(outer)};
  flat.insert(flat.end(), type.shape.begin() + static_cast<int64_t>(outer.size()),
              type.shape.end());
  const ValueId taken =
      f.emit(ir::Gather{0}, {f.reshape(in[0], flat), f.emit(ir::Broadcast{places}, {place})});
  return {f.reshape(taken, out.shape)};
}

}  // namespace kiln
