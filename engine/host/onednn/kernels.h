// oneDNN's kernels, as the kernel table sees them. Operands: those of the plain operation without
// its bias, then what the post-ops take (post_ops.h).
#pragma once
#include "engine/host/kernel.h"

namespace kiln::host {

Result<Types> infer_onednn_matmul(const Operation&, std::span<const TensorType>);
Result<KernelPtr> prepare_onednn_matmul(const Prepare&);
Result<Types> infer_onednn_conv(const Operation&, std::span<const TensorType>);
Result<KernelPtr> prepare_onednn_conv(const Prepare&);
Result<Types> infer_onednn_conv_transpose(const Operation&, std::span<const TensorType>);
Result<KernelPtr> prepare_onednn_conv_transpose(const Prepare&);

}  // namespace kiln::host
