#include "builder/codegen/lower_loop.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "builder/codegen/body_lowering.h"
#include "builder/codegen/normalize_loop.h"
#include "formats/loop_ir/analysis.h"

namespace kiln::codegen {
namespace {

constexpr int kMaxRestarts = 64;

// Outputs with the most elements first, views of other values after those: the first decides about
// the space.
std::vector<size_t> by_size(const ir::Graph& body) {
  std::vector<size_t> order(body.outputs().size());
  for (size_t o = 0; o < order.size(); ++o) order[o] = o;
  std::ranges::sort(order, {}, [&](size_t o) {
    const ir::Value& value = body.value(body.outputs()[o]);
    const bool made = value.producer != ir::kNoNode;
    const bool view =
        made && (std::holds_alternative<ir::Transpose>(body.node(value.producer).op) ||
                 std::holds_alternative<ir::Reshape>(body.node(value.producer).op));
    return std::tuple(-value.type.elements(), view, o);
  });
  return order;
}

bool depends_on_reduce(const ir::Graph& body, ir::ValueId value, std::set<uint32_t>& seen) {
  if (!seen.insert(ir::index_of(value)).second) return false;
  const ir::NodeId producer = body.value(value).producer;
  if (producer == ir::kNoNode) return false;
  const ir::Node& node = body.node(producer);
  if (std::holds_alternative<ir::Reduce>(node.op)) return true;
  return std::ranges::any_of(
      node.inputs, [&](ir::ValueId input) { return depends_on_reduce(body, input, seen); });
}

// The points of the largest output; of the first reduction's input when that output has no part in
// any reduction and the others have.
IterationSpace initial_space(const ir::Graph& body, ir::ValueId largest) {
  std::set<uint32_t> seen;
  if (!depends_on_reduce(body, largest, seen)) {
    for (const ir::NodeId id : body.topological_order()) {
      const auto* reduce = std::get_if<ir::Reduce>(&body.node(id).op);
      if (reduce == nullptr) continue;
      const TensorType& from = body.type(body.node(id).inputs[0]);
      if (from.elements() != body.type(largest).elements()) break;
      IterationSpace space(from.shape);
      for (const int64_t axis : reduce->axes) space.set_reduced(static_cast<uint32_t>(axis));
      return space;
    }
  }
  return IterationSpace(body.type(largest).shape);
}

Result<loop::LoopKernel> lower_over(const ir::Graph& body, IterationSpace space,
                                    std::span<const size_t> order, bool allow_cuts) {
  for (int i = 0; i < kMaxRestarts; ++i) {
    BodyLowering attempt(body, space, allow_cuts);
    auto kernel = attempt.run(order);
    if (kernel.ok()) {
      normalize(*kernel);
      const auto sound = loop::verify(*kernel);
      if (!sound.ok()) return refuse(sound.error().message);
      return kernel;
    }
    if (attempt.cut) {
      space.cut(*attempt.cut);
    } else if (!attempt.found_reduced.empty()) {
      for (const uint32_t dim : attempt.found_reduced) space.set_reduced(dim);
    } else if (attempt.missing_reduced) {
      for (const int64_t extent : *attempt.missing_reduced) space.add_reduced_axis(extent);
    } else {
      return kernel;
    }
  }
  return refuse("its reshapes cut the dims too often");
}

// Keeps index arithmetic far from overflow.
Result<> check_sizes(const ir::Graph& body) {
  constexpr int64_t kMaxElements = int64_t{1} << 50;
  for (uint32_t i = 0; i < body.value_count(); ++i) {
    const ir::Value& value = body.value(ir::ValueId{i});
    const auto count = checked_element_count(value.type.shape);
    if (!count || *count > kMaxElements) {
      return refuse("'" + value.name + "' is " + to_string(value.type) + ", too large for a loop");
    }
  }
  return Ok();
}

}  // namespace
}  // namespace kiln::codegen

namespace kiln {

Result<loop::LoopKernel> lower_to_loop(const ir::Graph& body) {
  using namespace codegen;
  if (body.outputs().empty()) return refuse("the body has no output");
  KILN_RETURN_IF_ERROR(check_sizes(body));
  const std::vector<size_t> order = by_size(body);
  const ir::ValueId largest = body.outputs()[order[0]];
  const IterationSpace space = initial_space(body, largest);
  auto kernel = lower_over(body, space, order, true);
  if (kernel.ok()) return kernel;
  // Some bodies have maps with divisions, though their dims cannot be cut for all of them.
  if (auto uncut = lower_over(body, space, order, false); uncut.ok()) return uncut;
  const IterationSpace flat(Shape{body.type(largest).elements()});
  if (auto one_dim = lower_over(body, flat, order, false); one_dim.ok()) return one_dim;
  return kernel;
}

}  // namespace kiln
