#include "builder/clean/contract_quantised.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "builder/clean/constant_value.h"
#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

constexpr DType kCode = DType::kF8E4M3FN;
// Tensor cores and the copies that feed them take rows of codes in pieces of 16 bytes.
constexpr int64_t kPiece = 16;
// Of a value on the way to a weight's codes, the f32 weights before all.
constexpr int64_t kMostBytes = int64_t{1} << 34;

// cast(codes) * scale; no scale: kNoValue.
struct Dequantised {
  ValueId codes, scale;
};

// The codes behind a cast to f32.
ValueId codes_of(const Graph& graph, ValueId value) {
  const auto* cast = ir::producer_as<ir::Cast>(graph, value);
  if (!cast || cast->to != DType::kF32) return kNoValue;
  const ValueId codes = ir::operand(graph, value, 0);
  return graph.type(codes).dtype == kCode ? codes : kNoValue;
}

std::optional<Dequantised> dequantised(const Graph& graph, ValueId value) {
  const auto* cast = ir::producer_as<ir::Cast>(graph, value);
  const bool narrowed = cast && graph.type(ir::operand(graph, value, 0)).dtype == DType::kF32 &&
                        is_float(cast->to) && bits_of(cast->to) == 16;
  if (narrowed) value = ir::operand(graph, value, 0);
  if (const ValueId codes = codes_of(graph, value); codes != kNoValue) {
    return Dequantised{codes, kNoValue};
  }
  if (!ir::made_by(graph, value, ScalarFn::kMul)) return std::nullopt;
  for (size_t i : {0, 1}) {
    const ValueId codes = codes_of(graph, ir::operand(graph, value, i));
    if (codes != kNoValue && graph.type(codes).shape == graph.type(value).shape) {
      return Dequantised{codes, ir::operand(graph, value, 1 - i)};
    }
  }
  return std::nullopt;
}

Error unfit(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// The numbers of a scale that only `axis` of `shape` tells apart: one, or one an index of it.
Result<std::vector<float>> scales(const Graph& graph, ValueId scale, const Shape& shape,
                                  std::optional<size_t> axis) {
  if (scale == kNoValue) return std::vector<float>{1};
  const TensorType& type = graph.type(scale);
  const auto bytes = evaluate(graph, scale, kMostBytes);
  if (!bytes || type.dtype != DType::kF32) {
    return unfit("scale '" + graph.value(scale).name + "' is known at run time only");
  }
  const size_t missing = shape.size() - std::min(shape.size(), type.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (type.shape[i] == 1 || (axis && i + missing == *axis)) continue;
    return unfit("scale " + to_string(type) + " of " + to_string(shape) +
                 " varies along the axis that is summed over, or by row");
  }
  std::vector<float> numbers(static_cast<size_t>(type.elements()));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes->data(), bytes->size());
  return numbers;
}

struct Contraction {
  ValueId left;               // codes
  SharedBytes right;          // codes of the weights
  std::vector<float> factor;  // of the product: one, or one a column
};

Result<Contraction> contraction(const Graph& graph, const ir::Node& node, const Dequantised& left,
                                const Dequantised& right) {
  const TensorType &rows = graph.type(left.codes), &weights = graph.type(right.codes);
  if (weights.rank() != 2) return unfit("the weights are " + to_string(weights) + ", not a matrix");
  const size_t column_axis = std::get<ir::MatMul>(node.op).transpose_b ? 0 : 1;
  if (const int64_t depth = weights.shape[1 - column_axis]; depth % kPiece != 0) {
    return unfit("it sums over " + std::to_string(depth) + " codes, no multiple of 16");
  }
  KILN_ASSIGN_OR_RETURN(const auto left_scale, scales(graph, left.scale, rows.shape, std::nullopt));
  KILN_ASSIGN_OR_RETURN(std::vector<float> factor,
                        scales(graph, right.scale, weights.shape, column_axis));
  for (float& number : factor) {
    number *= left_scale.at(0);
    if (!std::isnormal(number)) {
      return unfit("the product of the scales is " + std::to_string(number) +
                   ", no normal number of f32");
    }
  }
  auto codes = evaluate(graph, right.codes, kMostBytes);
  if (!codes) return unfit("the weights are known at run time only");
  return Contraction{left.codes, *std::move(codes), std::move(factor)};
}

// The scaled product of the codes, in the type that the MatMul had.
Result<ValueId> emit(Site& site, const Contraction& found, const Dequantised& right) {
  Graph& graph = site.graph;
  const ir::Value weights = graph.value(right.codes);
  const ValueId codes = graph.value(right.codes).constant
                            ? right.codes
                            : graph.add_constant(weights.name, weights.type, found.right);
  const Shape shape = found.factor.size() == 1 ? Shape{} : Shape{site.type().shape.back()};
  const DType dtype = site.type().dtype;
  const std::vector<double> numbers(found.factor.begin(), found.factor.end());
  const std::string name = site.node().name;
  KILN_ASSIGN_OR_RETURN(const ValueId factor,
                        add_doubles(graph, name + ".scale", {DType::kF32, shape}, numbers));
  KILN_ASSIGN_OR_RETURN(const ValueId product,
                        site.emit(*site.op<ir::MatMul>(), {found.left, codes}));
  KILN_ASSIGN_OR_RETURN(const ValueId scaled,
                        site.emit(ir::Pointwise{ScalarFn::kMul}, {product, factor}));
  return dtype == DType::kF32 ? Result<ValueId>(scaled) : site.emit(ir::Cast{dtype}, {scaled});
}

void add_note(PassContext& context, std::string note) {
  if (std::ranges::find(context.notes, note) == context.notes.end()) {
    context.notes.push_back(std::move(note));
  }
}

}  // namespace

Result<bool> contract_quantised(Graph& graph, PassContext& context) {
  bool changed = false;
  for (NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    if (node.erased || !std::holds_alternative<ir::MatMul>(node.op)) continue;
    const auto left = dequantised(graph, node.inputs[0]);
    const auto right = dequantised(graph, node.inputs[1]);
    if (!left || !right) continue;
    const auto found = contraction(graph, node, *left, *right);
    if (!found.ok()) {
      add_note(context,
               "node '" + node.name + "' multiplies dequantised numbers: " + found.error().message);
      continue;
    }
    Site site(graph, id);
    KILN_ASSIGN_OR_RETURN(const ValueId result, emit(site, *found, *right));
    graph.set_value_name(result, graph.value(site.result()).name);
    graph.replace_uses(site.result(), result);
    erase_with_producers(graph, id);
    changed = true;
  }
  return changed;
}

}  // namespace kiln::clean
