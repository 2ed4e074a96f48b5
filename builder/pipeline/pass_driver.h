// The pass driver: runs passes in order and does for all of them what none should do itself.
#pragma once
#include <span>

#include "builder/pipeline/pass.h"

namespace kiln {

// kInvalidArgument: options.disabled names an unknown or a required pass, or KILN_DUMP holds a word
// that means nothing.
Result<> check_pass_options(std::span<const Pass> passes, const PassOptions& options);

// Runs `passes` over `graph`. After each change the graph is compacted and verified; the change is
// dumped when the environment variable KILN_DUMP holds the word "graph": to
// `003-fuse-attention.graph` in $KILN_DUMP_DIR (or the current folder), below a folder named
// options.label if that is set.
// kInvalidArgument: as check_pass_options. Errors of a pass are prefixed with its name. kInternal:
// a pass broke the graph or lied about having changed it.
Result<> run_passes(ir::Graph& graph, std::span<const Pass> passes, PassContext& context);

}  // namespace kiln
