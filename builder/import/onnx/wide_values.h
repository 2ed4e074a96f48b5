// Statistics of narrow floats stay in f32: a normalisation that a model spells out in f16 nodes
// (mean, difference, square, mean, root, quotient) would overflow or lose digits if each node
// rounded. A reduction's f32 result is remembered beside its rounded value, and arithmetic that
// reads the rounded one works on the wide one instead, until another kind of operator takes over.
#pragma once
#include <vector>

#include "builder/import/onnx/node_context.h"

namespace kiln::onnx_import {

// x in its compute type: the remembered wide value, a square taken anew in f32, or a cast.
ValueId widen(NodeContext& c, ValueId x);
// Rounds to `to`, remembering the wide value if that loses something.
ValueId narrow(NodeContext& c, ValueId wide, DType to);
// fn of the arguments; in f32 if one of them has a wide value.
ValueId apply_keeping_width(NodeContext& c, ScalarFn fn, std::vector<ValueId> arguments);

}  // namespace kiln::onnx_import
