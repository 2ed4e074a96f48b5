// cast: one dtype to another, by the rules of dtype_conversion.h.
#include "engine/host/attributes.h"
#include "engine/host/dtype_conversion.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {

Result<Types> infer_cast(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "saturate"));
  const auto to = parse_dtype(o.get_string("to", ""));
  if (!to) return reject(o, "attribute 'to' is '" + o.get_string("to", "") + "', expected a dtype");
  return results(o, {{*to, in[0].shape}});
}

Result<KernelPtr> prepare_cast(const Prepare& p) {
  const DType from = p.inputs[0].type.dtype, to = p.outputs[0].dtype;
  const int64_t count = p.outputs[0].elements();
  const bool saturate = p.operation.get_int("saturate", 1) == 1;
  return make_kernel([=](Inputs in, Outputs out) {
    // The unused half of the last byte is zero, so that equal tensors have equal bytes.
    if (bits_of(to) == 4 && count % 2 == 1) output<std::byte>(out, 0)[count / 2] = std::byte{0};
    constexpr int64_t kPiece = 4096;  // even, so that no two threads share a byte of 4-bit data
    parallel_for((count + kPiece - 1) / kPiece, kPiece * 4, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kPiece, n = std::min(last * kPiece, count) - begin;
      convert(from, input<std::byte>(in, 0) + begin * bits_of(from) / 8, to,
              output<std::byte>(out, 0) + begin * bits_of(to) / 8, n, saturate);
    });
  });
}

}  // namespace kiln::host
