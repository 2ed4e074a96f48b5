// Gathers and scatters other than Gather itself.
#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

Outputs gather_elements(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.input_type(0).rank()));
  return c.opaque(Operation{"gather_elements", {}}.set("axis", axis), {c.input(0), c.input(1)});
}

Outputs gather_nd(NodeContext& c) {
  Operation gather{"gather_nd", {}};
  gather.set("batch_dims", c.get_int("batch_dims", 0));
  return c.opaque(std::move(gather), {c.input(0), c.input(1)});
}

Outputs scatter_elements(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.input_type(0).rank()));
  Operation scatter{"scatter_elements", {}};
  scatter.set("axis", axis).set("reduction", c.get_string("reduction", "none"));
  return c.opaque(std::move(scatter), {c.input(0), c.input(1), c.input(2)});
}

Outputs scatter_nd(NodeContext& c) {
  Operation scatter{"scatter_nd", {}};
  scatter.set("reduction", c.get_string("reduction", "none"));
  return c.opaque(std::move(scatter), {c.input(0), c.input(1), c.input(2)});
}

constexpr Handler kHandlers[] = {
    {"", "GatherElements", gather_elements}, {"", "GatherND", gather_nd},
    {"", "Scatter", scatter_elements},       {"", "ScatterElements", scatter_elements},
    {"", "ScatterND", scatter_nd},
};

}  // namespace

std::span<const Handler> indexing_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
