// BodyLowering: where the operands of a value are read.
#include "builder/codegen/body_lowering.h"

namespace kiln::codegen {

using loop::IndexMap;

Result<Division> BodyLowering::divided(const IndexMap& map, int64_t divisor) {
  auto division = divide(map, divisor, write_.kernel);
  if (division && !division->cut) return std::move(*division);
  if (division && !allow_cuts_) return std::move(*division);
  if (division) cut = division->cut;
  return refuse("a reshape has no normal form: an index does not divide by " +
                std::to_string(divisor));
}

Result<std::vector<IndexMap>> BodyLowering::unflatten(const IndexMap& flat, const Shape& shape) {
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

Result<std::vector<IndexMap>> BodyLowering::axes_of(const Place& place, const Shape& shape) {
  if (!place.is_flat) return place.index;
  return unflatten(place.index[0], shape);
}

IndexMap BodyLowering::flat_of(const Place& place, const Shape& shape) const {
  return place.is_flat ? place.index[0] : flatten(place.index, shape);
}

Result<Place> BodyLowering::broadcast_place(const Place& place, const Shape& to,
                                            const Shape& from) {
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

}  // namespace kiln::codegen
