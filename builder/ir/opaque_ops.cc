#include "builder/ir/opaque_ops.h"

#include <algorithm>

#include "engine/host_kernels.h"

namespace kiln::ir {
namespace {

// The host's kernel and the row must agree on the types to the last extent, so there is one
// function for both.
constexpr auto kInfer = infer_host_operation;

// Sorted by name.
constexpr OpaqueOp kRows[] = {
    {"arg_max", kInfer},
    {"arg_min", kInfer},
    {"average_pool", kInfer},
    {"bit_cast", kInfer},
    {"col2im", kInfer},
    {"cum_prod", kInfer},
    {"cum_sum", kInfer},
    {"deform_conv", kInfer},
    {"det", kInfer},
    {"dft", kInfer},
    {"gather_elements", kInfer},
    {"gather_nd", kInfer},
    {"grid_sample", kInfer},
    {"gru", kInfer},
    {"lp_pool", kInfer},
    {"lstm", kInfer},
    {"max_pool", kInfer},
    {"max_unpool", kInfer},
    {"resize", kInfer},
    {"reverse_sequence", kInfer},
    {"rnn", kInfer},
    {"roi_align", kInfer},
    {"scatter_elements", kInfer},
    {"scatter_nd", kInfer},
    {"top_k", kInfer},
};

}  // namespace

std::span<const OpaqueOp> opaque_ops() { return kRows; }

const OpaqueOp* find_opaque_op(std::string_view name) {
  const auto rows = opaque_ops();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const OpaqueOp& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace kiln::ir
