// ViewDigits follows a chain of reshapes and transposes. The source's flat index is written as
// digits of mixed radix; a reshape regroups digits (splitting one where it must), a transpose
// reorders groups, so the chain is known by the order of the digits at its end.
#pragma once
#include <optional>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln::clean {

class ViewDigits {
 public:
  explicit ViewDigits(const Shape& source);

  void transpose(const std::vector<int64_t>& perm);
  // False if the digits cannot be split that way: the chain is more than a permutation of digits.
  bool reshape(const Shape& shape);

  // The shortest list of Reshape and Transpose nodes that leads from the source to the view.
  std::vector<ir::Op> shortest_chain() const;

 private:
  struct Group {  // one dim of the view: digits, outer first; empty for extent 1
    std::vector<size_t> digits;
  };
  struct Run {  // digits that are neighbours in the source and in the view
    size_t first, last;
  };

  void split(size_t digit, int64_t outer);
  std::vector<size_t> sequence() const;
  Shape view_shape() const;
  std::optional<std::vector<int64_t>> as_transpose() const;
  std::vector<Run> runs() const;

  Shape source_;
  std::vector<int64_t> extents_;     // of digits, in the source's order
  std::vector<size_t> source_dims_;  // the source dim of each digit
  std::vector<Group> groups_;
};

}  // namespace kiln::clean
