#include "builder/clean/simplify_casts.h"

#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

struct FloatFormat {
  int significand, exponent;  // bits, the hidden one included
};

std::optional<FloatFormat> float_format(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return FloatFormat{53, 11};
    case DType::kF32:
      return FloatFormat{24, 8};
    case DType::kF16:
      return FloatFormat{11, 5};
    case DType::kBF16:
      return FloatFormat{8, 8};
    default:
      return std::nullopt;  // 8-bit floats differ in their infinities and NaNs
  }
}

// Every value of `from` is a value of `to`, and converts to it.
bool keeps_all(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  const auto target = float_format(to);
  if (const auto source = float_format(from)) {
    return target && target->significand >= source->significand &&
           target->exponent >= source->exponent;
  }
  if (is_float(from)) return false;
  const int digits = bits_of(from) - (is_signed_integer(from) ? 1 : 0);
  // An exponent of 8 bits reaches past 2^64; f16 ends below 2^16 and is left out.
  if (target) return to != DType::kF16 && target->significand >= digits;
  if (!is_integer(to)) return false;
  if (is_signed_integer(from) && !is_signed_integer(to)) return false;
  return bits_of(to) - (is_signed_integer(to) ? 1 : 0) >= digits;
}

Result<ValueId> drop_identity(Site& site) {
  const auto* cast = site.op<ir::Cast>();
  if (!cast || site.graph.type(site.input(0)).dtype != cast->to) return kNoValue;
  return site.input(0);
}

Result<ValueId> join_chain(Site& site) {
  const auto* cast = site.op<ir::Cast>();
  if (!cast || !ir::producer_as<ir::Cast>(site.graph, site.input(0))) return kNoValue;
  const ValueId source = ir::operand(site.graph, site.input(0), 0);
  const DType from = site.graph.type(source).dtype;
  const DType between = site.graph.type(site.input(0)).dtype;
  if (!keeps_all(from, between)) return kNoValue;
  // An integer out of range wraps; as a float it would have saturated.
  const bool saturates = !is_float(from) && is_float(between) && is_integer(cast->to);
  if (saturates && !keeps_all(from, cast->to)) return kNoValue;
  if (from == cast->to) return source;
  return site.emit(*cast, {source});
}

}  // namespace

Result<bool> simplify_casts(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {drop_identity, join_chain};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
