#include "engine/host/kernel_table.h"

#include "engine/host/loop/prepare_loop.h"
#include "engine/host/onednn/kernels.h"
#include "engine/host/plain/kernels.h"
#include "formats/loop_ir/scalar_function.h"

namespace kiln::host {
namespace {

#define KILN_ROW(name, storage) {#name, infer_##name, prepare_##name, Storage::storage}

constexpr KernelRow kRows[] = {
    KILN_ROW(arg_max, kNative),
    KILN_ROW(arg_min, kNative),
    KILN_ROW(attention, kNative),
    KILN_ROW(average_pool, kNative),
    KILN_ROW(bit_cast, kAny),
    KILN_ROW(broadcast, kBytes),
    KILN_ROW(cast, kAny),
    KILN_ROW(col2im, kNative),
    KILN_ROW(concat, kBytes),
    KILN_ROW(conv, kNative),
    KILN_ROW(conv_transpose, kNative),
    KILN_ROW(cum_prod, kNative),
    KILN_ROW(cum_sum, kNative),
    KILN_ROW(deform_conv, kNative),
    KILN_ROW(det, kNative),
    KILN_ROW(dft, kNative),
    KILN_ROW(gather, kBytes),
    KILN_ROW(gather_elements, kBytes),
    KILN_ROW(gather_nd, kBytes),
    KILN_ROW(grid_sample, kNative),
    KILN_ROW(gru, kNative),
    KILN_ROW(lp_pool, kNative),
    KILN_ROW(lstm, kNative),
    KILN_ROW(matmul, kNative),
    KILN_ROW(max_pool, kNative),
    KILN_ROW(max_unpool, kBytes),
    KILN_ROW(pad, kBytes),
    KILN_ROW(reduce, kNative),
    KILN_ROW(reshape, kAny),
    KILN_ROW(resize, kNative),
    KILN_ROW(reverse_sequence, kBytes),
    KILN_ROW(rnn, kNative),
    KILN_ROW(roi_align, kNative),
    KILN_ROW(scatter_elements, kNative),
    KILN_ROW(scatter_nd, kNative),
    KILN_ROW(slice, kBytes),
    KILN_ROW(top_k, kNative),
    KILN_ROW(transpose, kBytes),
    {"onednn.matmul", infer_onednn_matmul, prepare_onednn_matmul, Storage::kNative},
    {"onednn.conv", infer_onednn_conv, prepare_onednn_conv, Storage::kNative},
    {"onednn.conv_transpose", infer_onednn_conv_transpose, prepare_onednn_conv_transpose,
     Storage::kNative},
    {"loop", nullptr, prepare_loop, Storage::kAny},
};
#undef KILN_ROW

constexpr KernelRow kPointwise{"", infer_pointwise, prepare_pointwise, Storage::kNative};
constexpr KernelRow kMove{"", infer_pointwise, prepare_pointwise, Storage::kBytes};

}  // namespace

const KernelRow* find_kernel(std::string_view name) {
  for (const KernelRow& row : kRows) {
    if (row.name == name) return &row;
  }
  const auto fn = parse_scalar_fn(name);
  if (!fn) return nullptr;
  return *fn == ScalarFn::kWhere || *fn == ScalarFn::kIdentity ? &kMove : &kPointwise;
}

}  // namespace kiln::host
