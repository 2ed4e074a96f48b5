// onednn.matmul: matmul with post-ops, f32.
#include <algorithm>

#include "engine/host/onednn/kernels.h"
#include "engine/host/onednn/primitive_kernel.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

using Desc = dnnl::memory::desc;

constexpr auto kF32 = dnnl::memory::data_type::f32;

// Shapes of rank `rank`, with the last two axes swapped in the strides where stored transposed.
Desc matrix_desc(const Shape& stored, size_t rank, bool transposed) {
  Shape dims(rank - stored.size(), 1);
  dims.insert(dims.end(), stored.begin(), stored.end());
  Shape strides = row_major_strides(dims);
  if (transposed) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
  }
  return {dims, kF32, strides};
}

struct Problem {
  Shape a, b, out;
  bool transpose_a, transpose_b;
};

// One matrix b for all of a's leading axes: they are rows.
Problem simplified(Problem p) {
  const bool one_b = element_count({p.b.begin(), p.b.end() - 2}) == 1;
  if (!one_b || p.transpose_a) return p;
  const int64_t rows = element_count({p.out.begin(), p.out.end() - 1});
  return {
      {rows, p.a.back()}, {p.b.end() - 2, p.b.end()}, {rows, p.out.back()}, false, p.transpose_b};
}

// REQUIRES: no extent is zero.
Result<KernelPtr> make_matmul(const Prepare& p, const Problem& problem,
                              const std::vector<PostOp>& ops) {
  const size_t rank = problem.out.size();
  const Desc a = matrix_desc(problem.a, rank, problem.transpose_a);
  const Desc b = matrix_desc(problem.b, rank, problem.transpose_b);
  const Desc result = dense_desc(problem.out);
  // A constant b may be packed; otherwise packing it each time would cost more than it saves.
  const Desc wanted_b = p.inputs[1].constant ? any_layout(b) : b;
  Shape bias_dims(rank, 1);
  bias_dims.back() = problem.out.back();
  const bool has_bias = !ops.empty() && ops[0].kind == PostOp::Kind::kBias;
  PrimitiveParts parts;
  parts.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  const auto attributes = primitive_attributes(ops, result);
  const auto chosen = has_bias
                          ? describe<dnnl::matmul>(parts.engine, attributes, a, wanted_b,
                                                   dense_desc(bias_dims), result)
                          : describe<dnnl::matmul>(parts.engine, attributes, a, wanted_b, result);
  KILN_RETURN_IF_ERROR(refuse_reference(p.operation, chosen.impl_info_str()));
  parts.primitive = dnnl::matmul(chosen);
  parts.scratchpad = chosen.scratchpad_desc();
  parts.inputs = {{DNNL_ARG_SRC, a, a},
                  {DNNL_ARG_WEIGHTS, b, chosen.weights_desc(), p.inputs[1].constant}};
  if (has_bias)
    parts.inputs.push_back({DNNL_ARG_BIAS, dense_desc(bias_dims), dense_desc(bias_dims)});
  append_post_operands(ops, result, parts);
  parts.output = {DNNL_ARG_DST, result, result};
  return make_primitive_kernel(std::move(parts));
}

}  // namespace

Result<Types> infer_onednn_matmul(const Operation& o, InputTypes in) {
  if (in.size() < 2) return expect_inputs(o, in, 2).error();
  KILN_ASSIGN_OR_RETURN(const Types out, infer_matmul(o, in.first(2)));
  KILN_ASSIGN_OR_RETURN(const auto ops, post_ops(o));
  KILN_RETURN_IF_ERROR(check_post_inputs(o, ops, in, out[0], out[0].shape.back()));
  return out;
}

Result<KernelPtr> prepare_onednn_matmul(const Prepare& p) {
  const Operation& o = p.operation;
  const TensorType& out = p.outputs[0];
  if (out.dtype != DType::kF32) {
    return unsupported(o, "result is " + to_string(out) + ", expected f32 or a narrower float");
  }
  if (out.elements() == 0) return make_kernel([](Inputs, Outputs) {});
  KILN_RETURN_IF_ERROR(refuse_oversized(p));
  const Problem problem =
      simplified({p.inputs[0].type.shape, p.inputs[1].type.shape, out.shape,
                  o.get_int("transpose_a", 0) == 1, o.get_int("transpose_b", 0) == 1});
  if (p.inputs[0].type.elements() == 0) return unsupported(o, "the inner extent is 0");
  if (problem.out.size() > 6) return unsupported(o, "the rank is above 6");
  return guarded(o, [&] { return make_matmul(p, problem, *post_ops(o)); });
}

}  // namespace kiln::host
