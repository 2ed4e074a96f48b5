#include "builder/clean/sink_transposes.h"

#include <algorithm>

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return result;
}

bool is_elementwise(const ir::Op& op) {
  return std::holds_alternative<ir::Pointwise>(op) || std::holds_alternative<ir::Cast>(op);
}

// Every path down from `value` through pointwise nodes meets the inverse transpose.
bool meets_inverse(const Graph& graph, ValueId value, const std::vector<int64_t>& perm) {
  if (graph.is_output(value) || graph.value(value).uses.size() != 1) return false;
  const ir::Node& user = graph.node(graph.value(value).uses[0].node);
  if (const auto* transpose = std::get_if<ir::Transpose>(&user.op)) {
    return transpose->perm == inverse(perm);
  }
  return is_elementwise(user.op) && graph.type(user.outputs[0]).shape == graph.type(value).shape &&
         meets_inverse(graph, user.outputs[0], perm);
}

bool is_transposed(const Graph& graph, ValueId value, const std::vector<int64_t>& perm) {
  const auto* transpose = ir::producer_as<ir::Transpose>(graph, value);
  return transpose && transpose->perm == perm;
}

// perm puts the channels second that were last.
bool puts_channels_second(const std::vector<int64_t>& perm) {
  const auto rank = static_cast<int64_t>(perm.size());
  bool puts = rank > 2 && perm[0] == 0 && perm[1] == rank - 1;
  for (int64_t axis = 2; axis < rank; ++axis) puts &= perm[static_cast<size_t>(axis)] == axis - 1;
  return puts;
}

// A convolution's result with further readers, in front of what `perm` makes of channels that are
// last: libraries leave it in either order.
bool is_convolved(const Graph& graph, ValueId value, const std::vector<int64_t>& perm) {
  const bool convolves = ir::producer_as<ir::Conv>(graph, value) != nullptr ||
                         ir::producer_as<ir::ConvTranspose>(graph, value) != nullptr;
  return convolves && graph.value(value).uses.size() > 1 &&
         graph.type(value).rank() == static_cast<int64_t>(perm.size()) &&
         puts_channels_second(perm);
}

// The path down from `value` through pointwise nodes meets another operand that is transposed
// alike, or as well could be: a residual.
bool meets_its_like(const Graph& graph, ValueId value, const std::vector<int64_t>& perm) {
  if (!ir::used_once(graph, value)) return false;
  const ir::Use use = graph.value(value).uses[0];
  const ir::Node& user = graph.node(use.node);
  if (!is_elementwise(user.op) || graph.type(user.outputs[0]).shape != graph.type(value).shape) {
    return false;
  }
  for (uint32_t slot = 0; slot < user.inputs.size(); ++slot) {
    const ValueId other = user.inputs[slot];
    if (slot == use.slot || graph.type(other).shape != graph.type(value).shape) continue;
    if (is_transposed(graph, other, perm) || is_convolved(graph, other, perm)) return true;
  }
  return meets_its_like(graph, user.outputs[0], perm);
}

enum class Operand { kTransposed, kConvolved, kScalar, kConstant, kOther };

Operand classify(const Graph& graph, ValueId input, const std::vector<int64_t>& perm) {
  if (is_transposed(graph, input, perm)) return Operand::kTransposed;
  if (is_convolved(graph, input, perm)) return Operand::kConvolved;
  if (graph.type(input).elements() == 1) return Operand::kScalar;
  const bool fits = graph.type(input).rank() <= static_cast<int64_t>(perm.size());
  return graph.value(input).constant && fits ? Operand::kConstant : Operand::kOther;
}

// A constant operand as it looks in front of the transpose; the new nodes fold.
Result<ValueId> untranspose(Site& site, ValueId constant, const std::vector<int64_t>& perm) {
  Shape padded = site.graph.type(constant).shape;
  padded.insert(padded.begin(), perm.size() - padded.size(), 1);
  KILN_ASSIGN_OR_RETURN(const ValueId wide, site.emit(ir::Reshape{padded}, {constant}));
  return site.emit(ir::Transpose{inverse(perm)}, {wide});
}

// A node whose result has the rank and extents that its transposed operand has.
std::vector<int64_t> permutation_of(Site& site) {
  for (ValueId input : site.node().inputs) {
    const auto* transpose = ir::producer_as<ir::Transpose>(site.graph, input);
    if (transpose && site.graph.type(input).shape == site.type().shape) return transpose->perm;
  }
  return {};
}

Result<ValueId> sink(Site& site) {
  if (!is_elementwise(site.node().op)) return kNoValue;
  const auto perm = permutation_of(site);
  if (perm.empty()) return kNoValue;
  auto inputs = site.node().inputs;
  int64_t transposed = 0, spared = 0;
  for (ValueId input : inputs) {
    const Operand kind = classify(site.graph, input, perm);
    if (kind == Operand::kOther) return kNoValue;
    transposed += kind == Operand::kTransposed || kind == Operand::kConvolved;
    spared += kind == Operand::kTransposed && ir::used_once(site.graph, input);
  }
  if (spared == 0) return kNoValue;  // one more would come to be
  if (transposed == 1 && !meets_inverse(site.graph, site.result(), perm) &&
      !meets_its_like(site.graph, site.result(), perm)) {
    return kNoValue;
  }
  for (ValueId& input : inputs) {
    const Operand kind = classify(site.graph, input, perm);
    if (kind == Operand::kTransposed) input = ir::operand(site.graph, input, 0);
    if (kind == Operand::kConvolved) {
      KILN_ASSIGN_OR_RETURN(input, site.emit(ir::Transpose{inverse(perm)}, {input}));
    }
    if (kind == Operand::kConstant) {
      KILN_ASSIGN_OR_RETURN(input, untranspose(site, input, perm));
    }
  }
  KILN_ASSIGN_OR_RETURN(const ValueId moved, site.emit(site.node().op, std::move(inputs)));
  return site.emit(ir::Transpose{perm}, {moved});
}

}  // namespace

Result<bool> sink_transposes(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {sink};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
