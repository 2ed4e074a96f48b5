// Pieces of the text form that its printer and its parser share.
#pragma once
#include <string>
#include <string_view>

#include "builder/ir/graph.h"

namespace kiln::ir {

// The op as an Operation, control flow, regions and plugin calls included (without their bodies).
Operation text_operation_of(const Op& op);

// `= 1, 2, 3`, `= splat 1`, `= hex 00ff`, or `= hash 0123456789abcdef` for long contents.
std::string constant_to_text(const TensorType& type, const SharedBytes& bytes, bool full);
// Parses what follows `= `. A hash cannot be read back: kUnsupported.
Result<SharedBytes> parse_constant(const TensorType& type, std::string_view text);

std::string quote(std::string_view text);

}  // namespace kiln::ir
