// The text forms of shapes on a command line.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builder/build_options.h"
#include "formats/result.h"

namespace kiln {

struct NamedShapeSet {
  std::string name;  // "" when the text gives none
  ShapeSet shapes;
};

// "ids:Bx128,mask:Bx128", or "long=ids:Bx512,mask:Bx512" for a named set. Extents are numbers; B
// marks the batch dimension; "x:scalar" has no extents. kInvalidArgument says which piece is wrong.
Result<NamedShapeSet> parse_shapes(std::string_view text);

// "1,4,32": positive, ascending, without repeats.
Result<std::vector<int64_t>> parse_batches(std::string_view text);

}  // namespace kiln
