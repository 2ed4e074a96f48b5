// Every plain kernel: a function that infers its types and one that prepares it. What the
// operations mean is in OPERATIONS.md; the table that names them is in kernel_table.cc.
#pragma once
#include "engine/host/kernel.h"

namespace kiln::host {

#define KILN_HOST_OPERATION(name)                                            \
  Result<Types> infer_##name(const Operation&, std::span<const TensorType>); \
  Result<KernelPtr> prepare_##name(const Prepare&)

// The closed set of the IR.
KILN_HOST_OPERATION(pointwise);
KILN_HOST_OPERATION(cast);
KILN_HOST_OPERATION(reduce);
KILN_HOST_OPERATION(transpose);
KILN_HOST_OPERATION(reshape);
KILN_HOST_OPERATION(broadcast);
KILN_HOST_OPERATION(slice);
KILN_HOST_OPERATION(pad);
KILN_HOST_OPERATION(concat);
KILN_HOST_OPERATION(gather);
KILN_HOST_OPERATION(matmul);
KILN_HOST_OPERATION(conv);
KILN_HOST_OPERATION(conv_transpose);
KILN_HOST_OPERATION(attention);

// The long tail.
KILN_HOST_OPERATION(arg_max);
KILN_HOST_OPERATION(arg_min);
KILN_HOST_OPERATION(average_pool);
KILN_HOST_OPERATION(bit_cast);
KILN_HOST_OPERATION(col2im);
KILN_HOST_OPERATION(cum_prod);
KILN_HOST_OPERATION(cum_sum);
KILN_HOST_OPERATION(deform_conv);
KILN_HOST_OPERATION(det);
KILN_HOST_OPERATION(dft);
KILN_HOST_OPERATION(gather_elements);
KILN_HOST_OPERATION(gather_nd);
KILN_HOST_OPERATION(grid_sample);
KILN_HOST_OPERATION(gru);
KILN_HOST_OPERATION(lp_pool);
KILN_HOST_OPERATION(lstm);
KILN_HOST_OPERATION(max_pool);
KILN_HOST_OPERATION(max_unpool);
KILN_HOST_OPERATION(resize);
KILN_HOST_OPERATION(reverse_sequence);
KILN_HOST_OPERATION(rnn);
KILN_HOST_OPERATION(roi_align);
KILN_HOST_OPERATION(scatter_elements);
KILN_HOST_OPERATION(scatter_nd);
KILN_HOST_OPERATION(top_k);

#undef KILN_HOST_OPERATION

}  // namespace kiln::host
