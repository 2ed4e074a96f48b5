// Op <-> Operation: one spelling of every op for the text form, the host kernels and hashes.
#include "builder/ir/graph.h"
#include "builder/ir/opaque_ops.h"

namespace kiln::ir {
namespace {

Operation named(std::string_view name) { return {std::string(name), {}}; }

struct ToOperation {
  std::optional<Operation> operator()(const Pointwise& op) const { return named(to_string(op.fn)); }
  std::optional<Operation> operator()(const Cast& op) const {
    return named("cast")
        .set("to", std::string(to_string(op.to)))
        .set("saturate", int64_t{op.saturate});
  }
  std::optional<Operation> operator()(const Reduce& op) const {
    return named("reduce")
        .set("fn", std::string(to_string(op.fn)))
        .set("axes", op.axes)
        .set("keep_dims", int64_t{op.keep_dims});
  }
  std::optional<Operation> operator()(const Transpose& op) const {
    return named("transpose").set("perm", op.perm);
  }
  std::optional<Operation> operator()(const Reshape& op) const {
    return named("reshape").set("shape", op.shape);
  }
  std::optional<Operation> operator()(const Broadcast& op) const {
    return named("broadcast").set("shape", op.shape);
  }
  std::optional<Operation> operator()(const Slice& op) const {
    return named("slice").set("starts", op.starts).set("sizes", op.sizes).set("steps", op.steps);
  }
  std::optional<Operation> operator()(const Pad& op) const {
    return named("pad").set("before", op.before).set("after", op.after);
  }
  std::optional<Operation> operator()(const Concat& op) const {
    return named("concat").set("axis", op.axis);
  }
  std::optional<Operation> operator()(const Gather& op) const {
    return named("gather").set("axis", op.axis);
  }
  std::optional<Operation> operator()(const MatMul& op) const {
    return named("matmul")
        .set("transpose_a", int64_t{op.transpose_a})
        .set("transpose_b", int64_t{op.transpose_b});
  }
  std::optional<Operation> operator()(const Conv& op) const {
    return named("conv")
        .set("strides", op.strides)
        .set("dilations", op.dilations)
        .set("pads_begin", op.pads_begin)
        .set("pads_end", op.pads_end)
        .set("groups", op.groups);
  }
  std::optional<Operation> operator()(const ConvTranspose& op) const {
    return named("conv_transpose")
        .set("strides", op.strides)
        .set("dilations", op.dilations)
        .set("pads_begin", op.pads_begin)
        .set("pads_end", op.pads_end)
        .set("output_padding", op.output_padding)
        .set("groups", op.groups);
  }
  std::optional<Operation> operator()(const Attention& op) const {
    return named("attention")
        .set("scale", op.scale)
        .set("causal", int64_t{op.causal})
        .set("softcap", op.softcap)
        .set("masked_row_zero", int64_t{op.masked_row_zero});
  }
  std::optional<Operation> operator()(const Opaque& op) const { return op.operation; }
  template <class Other>
  std::optional<Operation> operator()(const Other&) const {
    return std::nullopt;
  }
};

// The closed ops by name; nullopt for a name that is none of them.
std::optional<Op> closed_op(const Operation& o) {
  if (const auto fn = parse_scalar_fn(o.name)) return Pointwise{*fn};
  if (o.name == "reshape") return Reshape{o.get_ints("shape")};
  if (o.name == "broadcast") return Broadcast{o.get_ints("shape")};
  if (o.name == "transpose") return Transpose{o.get_ints("perm")};
  if (o.name == "slice") {
    return Slice{o.get_ints("starts"), o.get_ints("sizes"), o.get_ints("steps")};
  }
  if (o.name == "pad") return Pad{o.get_ints("before"), o.get_ints("after")};
  if (o.name == "concat") return Concat{o.get_int("axis", 0)};
  if (o.name == "gather") return Gather{o.get_int("axis", 0)};
  if (o.name == "matmul") {
    return MatMul{o.get_int("transpose_a", 0) != 0, o.get_int("transpose_b", 0) != 0};
  }
  if (o.name == "conv") {
    return Conv{o.get_ints("strides"), o.get_ints("dilations"), o.get_ints("pads_begin"),
                o.get_ints("pads_end"), o.get_int("groups", 1)};
  }
  if (o.name == "conv_transpose") {
    return ConvTranspose{o.get_ints("strides"),        o.get_ints("dilations"),
                         o.get_ints("pads_begin"),     o.get_ints("pads_end"),
                         o.get_ints("output_padding"), o.get_int("groups", 1)};
  }
  if (o.name == "attention") {
    return Attention{o.get_double("scale", 1.0), o.get_int("causal", 0) != 0,
                     o.get_double("softcap", 0.0), o.get_int("masked_row_zero", 0) != 0};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Operation> operation_of(const Op& op) { return std::visit(ToOperation{}, op); }

Result<Op> op_from_operation(const Operation& operation) {
  if (auto op = closed_op(operation)) return *op;
  if (operation.name == "cast") {
    const auto to = parse_dtype(operation.get_string("to", ""));
    if (!to) return Error{ErrorCode::kInvalidArgument, "cast: attribute 'to' names no dtype"};
    return Op{Cast{*to, operation.get_int("saturate", 1) != 0}};
  }
  if (operation.name == "reduce") {
    const auto fn = parse_reduce_fn(operation.get_string("fn", ""));
    if (!fn) return Error{ErrorCode::kInvalidArgument, "reduce: attribute 'fn' names no reduction"};
    return Op{Reduce{*fn, operation.get_ints("axes"), operation.get_int("keep_dims", 1) != 0}};
  }
  if (find_opaque_op(operation.name)) return Op{Opaque{operation}};
  return Error{ErrorCode::kInvalidArgument, "there is no operation '" + operation.name + "'"};
}

}  // namespace kiln::ir
