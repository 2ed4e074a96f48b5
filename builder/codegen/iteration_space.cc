#include "builder/codegen/iteration_space.h"

namespace kiln::codegen {
namespace {

loop::IndexMap term(size_t dim, int64_t stride) {
  return {0, {{static_cast<uint32_t>(dim), 1, 0, stride}}, {}};
}

}  // namespace

IterationSpace::IterationSpace(const Shape& shape) : shape_(shape) {
  for (size_t a = 0; a < shape.size(); ++a) factors_.push_back({shape[a], false, a});
}

std::vector<loop::Dim> IterationSpace::dims() const {
  std::vector<loop::Dim> dims;
  for (const Factor& factor : factors_) dims.push_back({factor.extent, factor.reduced});
  return dims;
}

std::vector<loop::IndexMap> IterationSpace::axes() const {
  std::vector<loop::IndexMap> axes(shape_.size());
  std::vector<int64_t> strides(shape_.size(), 1);
  for (size_t d = factors_.size(); d-- > 0;) {
    const Factor& factor = factors_[d];
    if (factor.axis >= shape_.size()) continue;
    if (factor.extent != 1) {
      axes[factor.axis] = add(axes[factor.axis], term(d, strides[factor.axis]));
    }
    strides[factor.axis] *= factor.extent;
  }
  return axes;
}

loop::IndexMap IterationSpace::flat(bool reduced) const {
  loop::IndexMap flat;
  int64_t stride = 1;
  for (size_t d = factors_.size(); d-- > 0;) {
    if (factors_[d].reduced != reduced) continue;
    if (factors_[d].extent != 1) flat = add(flat, term(d, stride));
    stride *= factors_[d].extent;
  }
  return flat;
}

loop::IndexMap IterationSpace::flat_over_all() const {
  loop::IndexMap flat;
  int64_t stride = 1;
  for (size_t d = factors_.size(); d-- > 0;) {
    if (factors_[d].extent != 1) flat = add(flat, term(d, stride));
    stride *= factors_[d].extent;
  }
  return flat;
}

void IterationSpace::set_reduced(uint32_t dim) { factors_[dim].reduced = true; }

void IterationSpace::add_reduced_axis(int64_t extent) {
  factors_.push_back({extent, true, shape_.size()});
}

void IterationSpace::cut(const Cut& cut) {
  Factor inner = factors_[cut.dim];
  factors_[cut.dim].extent /= cut.inner;
  inner.extent = cut.inner;
  factors_.insert(factors_.begin() + cut.dim + 1, inner);
}

}  // namespace kiln::codegen
