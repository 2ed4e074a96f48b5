#include "builder/clean/convolve_before_resize.h"

#include <algorithm>

#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == wanted; });
}

bool takes_single_cells(const ir::Conv& conv, const Shape& w) {
  return conv.groups == 1 && all_are({w.begin() + 2, w.end()}, 1) && all_are(conv.strides, 1) &&
         all_are(conv.pads_begin, 0) && all_are(conv.pads_end, 0);
}

// Every result is a mean of elements of the same channel, whose weights add up to 1.
bool keeps_channels(const Operation& resize, const Shape& x, const Shape& y) {
  const std::string mode = resize.get_string("mode", "");
  const auto scales = resize.get_doubles("scales");
  return (mode == "nearest" || mode == "linear") &&
         resize.get_string("coordinate_transformation_mode", "") != "tf_crop_and_resize" &&
         x.size() > 2 && std::equal(x.begin(), x.begin() + 2, y.begin()) && scales.size() > 2 &&
         scales[0] == 1 && scales[1] == 1;
}

Result<ValueId> swap(Site& site) {
  const auto* conv = site.op<ir::Conv>();
  if (!conv || !takes_single_cells(*conv, site.graph.type(site.input(1)).shape)) return kNoValue;
  const ValueId large = site.input(0);
  const auto* opaque = ir::producer_as<ir::Opaque>(site.graph, large);
  if (!opaque || opaque->operation.name != "resize" || !ir::used_once(site.graph, large)) {
    return kNoValue;
  }
  const ValueId small = ir::operand(site.graph, large, 0);
  const Shape x = site.graph.type(small).shape, y = site.graph.type(large).shape;
  if (!keeps_channels(opaque->operation, x, y) || element_count(y) <= element_count(x)) {
    return kNoValue;
  }
  const ir::Node enlarging = site.graph.node(site.graph.value(large).producer);
  Operation resize = opaque->operation;
  auto sizes = resize.get_ints("sizes");
  if (sizes.size() != x.size()) return kNoValue;
  std::vector<ValueId> inputs = site.node().inputs;
  inputs[0] = small;
  const ir::Conv copy = *conv;
  KILN_ASSIGN_OR_RETURN(const ValueId mixed, site.emit(copy, std::move(inputs)));
  sizes[1] = site.graph.type(mixed).shape[1];
  resize.set("sizes", sizes);
  KILN_ASSIGN_OR_RETURN(const NodeId enlarged,
                        site.graph.add_node(enlarging.name, enlarging.origins,
                                            ir::Opaque{std::move(resize)}, {mixed}));
  return site.graph.result(enlarged);
}

}  // namespace

Result<bool> convolve_before_resize(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {swap};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
