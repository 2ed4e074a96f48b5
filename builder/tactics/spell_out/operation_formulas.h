// The formulas of spell_out.h, by family. Each takes the node's inputs and yields its outputs, or
// refuses through the formula.
#pragma once
#include <vector>

#include "builder/tactics/spell_out/formula.h"

namespace kiln {

using Values = std::vector<ir::ValueId>;

Values write_pool(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_resize(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_arg_most(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_cumulation(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_top_k(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_gather_elements(Formula& f, const Operation& op, const Values& in,
                             const TensorType& out);
Values write_gather_nd(Formula& f, const Operation& op, const Values& in, const TensorType& out);
Values write_scatter_elements(Formula& f, const Operation& op, const Values& in,
                              const TensorType& out);
Values write_scatter_nd(Formula& f, const Operation& op, const Values& in, const TensorType& out);

Values write_matmul(Formula& f, const ir::MatMul& op, const Values& in, const TensorType& out);
Values write_conv(Formula& f, const ir::Conv& op, const Values& in, const TensorType& out);
Values write_conv_transpose(Formula& f, const ir::ConvTranspose& op, const Values& in,
                            const TensorType& out);

}  // namespace kiln
