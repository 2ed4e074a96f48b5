// IterationSpace: the dims of a kernel in the making, as factors of the axes of one tensor that all
// points run over, so that cutting a dim keeps the axes' meaning.
#pragma once
#include <vector>

#include "builder/codegen/index_algebra.h"

namespace kiln::codegen {

class IterationSpace {
 public:
  // One axis for each extent, none reduced.
  explicit IterationSpace(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::vector<loop::Dim> dims() const;
  // The index along each axis of shape().
  std::vector<loop::IndexMap> axes() const;
  // The row-major flat index over the reduced dims or the others, and the number of its values.
  loop::IndexMap flat(bool reduced) const;
  loop::IndexMap flat_over_all() const;

  void set_reduced(uint32_t dim);
  // Appends a reduced axis; it is not part of shape().
  void add_reduced_axis(int64_t extent);
  // REQUIRES: inner divides the dim's extent.
  void cut(const Cut& cut);

 private:
  struct Factor {
    int64_t extent;
    bool reduced;
    size_t axis;
  };
  Shape shape_;
  std::vector<Factor> factors_;  // row-major: outer first; one a dim
};

}  // namespace kiln::codegen
