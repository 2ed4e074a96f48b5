#include "builder/tactics/spell_out/spell_out.h"

#include "builder/tactics/spell_out/operation_formulas.h"

namespace kiln {
namespace {

using ir::Graph;

struct Row {
  std::string_view name;
  Values (*write)(Formula&, const Operation&, const Values&, const TensorType&);
};
constexpr Row kRows[] = {
    {"max_pool", write_pool},
    {"average_pool", write_pool},
    {"resize", write_resize},
    {"arg_max", write_arg_most},
    {"arg_min", write_arg_most},
    {"cum_sum", write_cumulation},
    {"cum_prod", write_cumulation},
    {"top_k", write_top_k},
    {"gather_elements", write_gather_elements},
    {"gather_nd", write_gather_nd},
    {"scatter_elements", write_scatter_elements},
    {"scatter_nd", write_scatter_nd},
};

Values write_opaque(Formula& f, const Operation& op, const Values& in, const TensorType& out) {
  for (const Row& row : kRows) {
    if (row.name == op.name) return row.write(f, op, in, out);
  }
  f.refuse("'" + op.name + "' has no form as loops");
  return {};
}

Values write_anchor(Formula& f, const ir::Op& op, const Values& in, const TensorType& out) {
  if (const auto* matmul = std::get_if<ir::MatMul>(&op)) return write_matmul(f, *matmul, in, out);
  if (const auto* conv = std::get_if<ir::Conv>(&op)) return write_conv(f, *conv, in, out);
  const auto* reverse = std::get_if<ir::ConvTranspose>(&op);
  return reverse ? write_conv_transpose(f, *reverse, in, out) : Values();
}

}  // namespace

Result<Graph> spell_out_operations(const Graph& body, Anchors anchors) {
  return write_formulas(body, [&](Formula& f, const ir::Node& node, const Values& inputs) {
    const TensorType& out = body.type(node.outputs[0]);
    const auto* opaque = std::get_if<ir::Opaque>(&node.op);
    if (opaque) return write_opaque(f, opaque->operation, inputs, out);
    return anchors == Anchors::kKeep ? Values() : write_anchor(f, node.op, inputs, out);
  });
}

}  // namespace kiln
