// The types of each op's outputs from those of its inputs; infer_types() picks the rule.
#pragma once
#include "builder/ir/op.h"
#include "builder/ir/type_rules/checks.h"

namespace kiln::ir {

// pointwise.cc
Inferred infer(const Pointwise& op, Types in);
Inferred infer(const Cast& op, Types in);
Inferred infer(const Reduce& op, Types in);
// movement.cc
Inferred infer(const Transpose& op, Types in);
Inferred infer(const Reshape& op, Types in);
Inferred infer(const Broadcast& op, Types in);
Inferred infer(const Slice& op, Types in);
Inferred infer(const Pad& op, Types in);
Inferred infer(const Concat& op, Types in);
Inferred infer(const Gather& op, Types in);
// contraction.cc
Inferred infer(const MatMul& op, Types in);
Inferred infer(const Attention& op, Types in);
// convolution.cc
Inferred infer(const Conv& op, Types in);
Inferred infer(const ConvTranspose& op, Types in);
// bodies.cc
Inferred infer(const If& op, Types in);
Inferred infer(const Loop& op, Types in);
Inferred infer(const Region& op, Types in);

}  // namespace kiln::ir
