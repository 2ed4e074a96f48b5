// Every node that no fusion took becomes a region of its own, in the bodies of control flow too, so
// that what follows meets nothing but regions. A body of reshapes alone is an alias: its output is
// its input's bytes, which memory planning knows.
#pragma once
#include "builder/pipeline/pass.h"

namespace kiln::fuse {

Result<bool> form_regions(ir::Graph& graph, PassContext& context);

}  // namespace kiln::fuse
