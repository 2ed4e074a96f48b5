// A region as a library's call and, where the call leaves something out, loops behind it.
#pragma once
#include "builder/tactics/cuda/masked_rows.h"
#include "builder/tactics/lowered.h"
#include "builder/tactics/split_anchor.h"
#include "builder/tactics/tactic.h"

namespace kiln {

// Where a step reads `value`, an input or a constant of the body; a constant is added to the
// lowering.
LocalBuffer buffer_of(const ir::Graph& body, ir::ValueId value, Lowered& lowered);

// The bytes of an operand of the region that never changes. kUnsupported: it is computed.
Result<HostTensor> known_operand(const TacticQuery& query, ir::ValueId value);

// The call, complete but for its output, makes the region's only one.
void add_call(LibraryCall call, Lowered& lowered);

// The call or launch, complete but for its output, makes the anchor's result; the loop makes the
// region's outputs from it.
void add_call_and_rest(LibraryCall call, const ir::Graph& body, const SplitRest& rest,
                       Lowered& lowered);
void add_launch_and_rest(LocalLaunch launch, const ir::Graph& body, const SplitRest& rest,
                         Lowered& lowered);

// The call, complete but for its output, makes attention with the mean of v in masked rows; two
// loops zero them.
void add_call_and_zeros(LibraryCall call, const ir::Graph& body, const MaskedRows& rows,
                        Lowered& lowered);

}  // namespace kiln
