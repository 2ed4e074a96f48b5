#include "builder/ir/opaque_ops.h"

#include <algorithm>

namespace kiln::ir {

std::span<const OpaqueOp> opaque_ops() { return {}; }

const OpaqueOp* find_opaque_op(std::string_view name) {
  const auto rows = opaque_ops();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const OpaqueOp& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace kiln::ir
