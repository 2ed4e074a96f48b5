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
};

}  // namespace

Result<Graph> spell_out_operations(const Graph& body) {
  return write_formulas(body, [&](Formula& f, const ir::Node& node, const Values& inputs) {
    const auto* opaque = std::get_if<ir::Opaque>(&node.op);
    if (!opaque) return Values();
    for (const Row& row : kRows) {
      if (row.name != opaque->operation.name) continue;
      return row.write(f, opaque->operation, inputs, body.type(node.outputs[0]));
    }
    f.refuse("'" + opaque->operation.name + "' has no form as loops");
    return Values();
  });
}

}  // namespace kiln
