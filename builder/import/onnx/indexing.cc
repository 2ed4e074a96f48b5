// Gathers and scatters other than Gather itself, and BitCast.
#include <numeric>

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

// The cache with `update` written from each row's index on, round and round when circular.
Outputs tensor_scatter(NodeContext& c) {
  const TensorType cache = c.input_type(0), update = c.input_type(1);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", -2, cache.rank()));
  const std::string mode = c.get_string("mode", "linear");
  if (axis == 0 || update.rank() != cache.rank() || (mode != "linear" && mode != "circular")) {
    return c.fail("cache is " + to_string(cache) + ", update " + to_string(update) + ", mode '" +
                  mode + "', expected equal ranks, a later axis than 0, linear or circular");
  }
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> steps(static_cast<size_t>(update.shape[at]));
  std::iota(steps.begin(), steps.end(), int64_t{0});
  Shape along(update.shape.size(), 1), rows = along;
  along[at] = update.shape[at];
  ValueId indices = c.reshape(c.ints(steps), along);
  if (c.has(2)) {
    rows[0] = update.shape[0];
    indices = c.add(indices, c.reshape(c.cast(c.input(2), DType::kI64), rows));
  }
  if (mode == "circular") {
    const ValueId length = c.scalar_int(cache.shape[at], DType::kI64);
    indices = c.apply(ScalarFn::kMod, {indices, length});
  }
  Operation scatter{"scatter_elements", {}};
  scatter.set("axis", axis).set("reduction", std::string("none"));
  return c.opaque(std::move(scatter), {c.input(0), c.broadcast(indices, update.shape), c.input(1)});
}

// The same bytes as another type of the same size.
Outputs bit_cast(NodeContext& c) {
  const DType to = c.get_dtype("to", DType::kF32);
  Operation op{"bit_cast", {}};
  op.set("to", std::string(to_string(to)));
  return c.opaque(std::move(op), {c.input(0)});
}

constexpr Handler kHandlers[] = {
    {"", "BitCast", bit_cast},
    {"", "GatherElements", gather_elements},
    {"", "GatherND", gather_nd},
    {"", "Scatter", scatter_elements},
    {"", "ScatterElements", scatter_elements},
    {"", "ScatterND", scatter_nd},
    {"", "TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const Handler> indexing_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
