// onednn.conv and onednn.conv_transpose: with post-ops, f32. Attribute "blocked" 1 lets oneDNN
// choose the layouts of input and output, at the price of reordering both.
#include <algorithm>

#include "engine/host/onednn/kernels.h"
#include "engine/host/onednn/primitive_kernel.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

using Desc = dnnl::memory::desc;

constexpr auto kF32 = dnnl::memory::data_type::f32;

struct Window {
  Shape strides, dilations, begin, end;  // dilations as oneDNN counts them: 0 is dense
  int64_t groups;
};

Window read_window(const Operation& o) {
  Window window{o.get_ints("strides"), o.get_ints("dilations"), o.get_ints("pads_begin"),
                o.get_ints("pads_end"), o.get_int("groups", 1)};
  for (int64_t& dilation : window.dilations) --dilation;
  return window;
}

// [groups,] output channels, input channels of a group, kernel...: oneDNN's view of ONNX's weight,
// which for a transposed convolution has the channels the other way round.
Desc weight_desc(const Shape& stored, int64_t groups, bool transposed) {
  Shape dims{groups, stored[0] / groups, stored[1]};
  dims.insert(dims.end(), stored.begin() + 2, stored.end());
  Shape strides = row_major_strides(dims);
  if (transposed) {
    std::swap(dims[1], dims[2]);
    std::swap(strides[1], strides[2]);
  }
  if (groups == 1) {
    dims.erase(dims.begin());
    strides.erase(strides.begin());
  }
  return {dims, kF32, strides};
}

struct Layouts {
  Desc x, w, bias, y;  // given
  Desc any_x, any_w, any_y;
  bool has_bias;
};

Layouts layouts_of(const Prepare& p, const Window& window, bool transposed, bool has_bias) {
  Layouts l;
  l.x = dense_desc(p.inputs[0].type.shape);
  l.y = dense_desc(p.outputs[0].shape);
  l.w = weight_desc(p.inputs[1].type.shape, window.groups, transposed);
  l.has_bias = has_bias;
  if (has_bias) l.bias = dense_desc({p.outputs[0].shape[1]});
  const bool blocked = p.operation.get_int("blocked", 0) == 1;
  l.any_x = blocked ? any_layout(l.x) : l.x;
  l.any_y = blocked ? any_layout(l.y) : l.y;
  l.any_w = any_layout(l.w);
  return l;
}

// The primitive of `Convolution` (convolution or deconvolution, which share their interface).
template <class Convolution>
Result<KernelPtr> make_conv(const Prepare& p, const Window& window, bool transposed,
                            dnnl::algorithm algorithm) {
  const auto ops = *post_ops(p.operation);
  const bool has_bias = !ops.empty() && ops[0].kind == PostOp::Kind::kBias;
  const Layouts l = layouts_of(p, window, transposed, has_bias);
  constexpr auto kForward = dnnl::prop_kind::forward_inference;
  PrimitiveParts parts;
  parts.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  const auto attributes = primitive_attributes(ops, l.y);
  const auto chosen = has_bias
                          ? describe<Convolution>(parts.engine, attributes, kForward, algorithm,
                                                  l.any_x, l.any_w, l.bias, l.any_y, window.strides,
                                                  window.dilations, window.begin, window.end)
                          : describe<Convolution>(parts.engine, attributes, kForward, algorithm,
                                                  l.any_x, l.any_w, l.any_y, window.strides,
                                                  window.dilations, window.begin, window.end);
  KILN_RETURN_IF_ERROR(refuse_reference(p.operation, chosen.impl_info_str()));
  parts.primitive = Convolution(chosen);
  parts.scratchpad = chosen.scratchpad_desc();
  parts.inputs = {{DNNL_ARG_SRC, l.x, chosen.src_desc()},
                  {DNNL_ARG_WEIGHTS, l.w, chosen.weights_desc(), p.inputs[1].constant}};
  if (has_bias) parts.inputs.push_back({DNNL_ARG_BIAS, l.bias, l.bias});
  append_post_operands(ops, l.y, parts);
  parts.output = {DNNL_ARG_DST, l.y, chosen.dst_desc()};
  return make_primitive_kernel(std::move(parts));
}

Result<Types> infer_with(InferFn infer, const Operation& o, InputTypes in) {
  if (in.size() < 2) return expect_inputs(o, in, 2).error();
  KILN_ASSIGN_OR_RETURN(const Types out, infer(o, in.first(2)));
  KILN_ASSIGN_OR_RETURN(const auto ops, post_ops(o));
  KILN_RETURN_IF_ERROR(check_post_inputs(o, ops, in, out[0], out[0].shape[1]));
  return out;
}

Result<> check_supported(const Prepare& p, const Window& window) {
  const TensorType& out = p.outputs[0];
  if (out.dtype != DType::kF32) {
    return unsupported(p.operation,
                       "result is " + to_string(out) + ", expected f32 or a narrower float");
  }
  if (out.rank() > 5) return unsupported(p.operation, "there are more than 3 spatial axes");
  if (p.inputs[0].type.elements() == 0) return unsupported(p.operation, "the input is empty");
  constexpr int64_t kMost = 1 << 16;
  for (const Shape* list : {&window.begin, &window.end, &window.strides, &window.dilations}) {
    for (int64_t amount : *list) {
      if (amount >= 0 && amount <= kMost) continue;
      return unsupported(p.operation, "a pad, stride or dilation is " + std::to_string(amount) +
                                          ", expected 0 to " + std::to_string(kMost));
    }
  }
  return refuse_oversized(p);
}

}  // namespace

Result<Types> infer_onednn_conv(const Operation& o, InputTypes in) {
  return infer_with(infer_conv, o, in);
}

Result<KernelPtr> prepare_onednn_conv(const Prepare& p) {
  const Window window = read_window(p.operation);
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  KILN_RETURN_IF_ERROR(check_supported(p, window));
  return guarded(p.operation, [&] {
    return make_conv<dnnl::convolution_forward>(p, window, false,
                                                dnnl::algorithm::convolution_direct);
  });
}

Result<Types> infer_onednn_conv_transpose(const Operation& o, InputTypes in) {
  return infer_with(infer_conv_transpose, o, in);
}

Result<KernelPtr> prepare_onednn_conv_transpose(const Prepare& p) {
  Window window = read_window(p.operation);
  const auto extra = p.operation.get_ints("output_padding");
  for (size_t i = 0; i < extra.size(); ++i) window.end[i] -= extra[i];
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  KILN_RETURN_IF_ERROR(check_supported(p, window));
  return guarded(p.operation, [&] {
    return make_conv<dnnl::deconvolution_forward>(p, window, true,
                                                  dnnl::algorithm::deconvolution_direct);
  });
}

}  // namespace kiln::host
