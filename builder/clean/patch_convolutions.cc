#include "builder/clean/patch_convolutions.h"

#include <algorithm>

#include "builder/clean/rewrite.h"

namespace kiln::clean {
namespace {

constexpr int64_t kManyChannels = 8;  // fill the vectors of 16 bytes that libraries load

bool all_are(const std::vector<int64_t>& numbers, int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == wanted; });
}

bool takes_patches(const ir::Conv& conv, const Shape& x, const Shape& w) {
  const Shape kernel(w.begin() + 2, w.end());
  return conv.groups == 1 && kernel.size() <= 3 && kernel == conv.strides && !all_are(kernel, 1) &&
         all_are(conv.dilations, 1) && all_are(conv.pads_begin, 0) && all_are(conv.pads_end, 0) &&
         x[1] < kManyChannels && element_count(x) > 0;
}

// Every reader puts axis 1, the channels, last: at once or when the axes behind it are regrouped.
bool read_channels_last(const Graph& graph, ValueId value) {
  const Shape& shape = graph.type(value).shape;
  const auto& uses = graph.value(value).uses;
  return !graph.is_output(value) && std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
    const ir::Node& reader = graph.node(use.node);
    if (const auto* transpose = std::get_if<ir::Transpose>(&reader.op)) {
      return transpose->perm.back() == 1;
    }
    const auto* reshape = std::get_if<ir::Reshape>(&reader.op);
    return reshape && reshape->shape.size() > 2 &&
           std::equal(shape.begin(), shape.begin() + 2, reshape->shape.begin()) &&
           read_channels_last(graph, reader.outputs[0]);
  });
}

// x without what is behind the last whole window of an axis.
Result<ValueId> whole_windows(Site& site, const Shape& counts, const Shape& kernel) {
  const ValueId x = site.input(0);
  ir::Slice slice;
  slice.sizes = site.graph.type(x).shape;
  slice.starts.assign(slice.sizes.size(), 0);
  slice.steps.assign(slice.sizes.size(), 1);
  for (size_t i = 0; i < kernel.size(); ++i) slice.sizes[i + 2] = counts[i] * kernel[i];
  if (slice.sizes == site.graph.type(x).shape) return x;
  return site.emit(std::move(slice), {x});
}

// [N, patches, C * kernel]: elements of a row lie as those of a filter do.
Result<ValueId> patches(Site& site, const Shape& counts, const Shape& kernel) {
  KILN_ASSIGN_OR_RETURN(const ValueId x, whole_windows(site, counts, kernel));
  const Shape shape = site.graph.type(x).shape;
  const auto rank = static_cast<int64_t>(kernel.size());
  Shape split = {shape[0], shape[1]};
  std::vector<int64_t> perm = {0};
  for (int64_t i = 0; i < rank; ++i) {
    split.push_back(counts[static_cast<size_t>(i)]);
    split.push_back(kernel[static_cast<size_t>(i)]);
    perm.push_back(2 + 2 * i);
  }
  perm.push_back(1);
  for (int64_t i = 0; i < rank; ++i) perm.push_back(3 + 2 * i);
  KILN_ASSIGN_OR_RETURN(const ValueId cut, site.emit(ir::Reshape{split}, {x}));
  KILN_ASSIGN_OR_RETURN(const ValueId sorted, site.emit(ir::Transpose{perm}, {cut}));
  return site.emit(ir::Reshape{{shape[0], element_count(counts), shape[1] * element_count(kernel)}},
                   {sorted});
}

// [N, patches, M] as the convolution's result.
Result<ValueId> channels_second(Site& site, ValueId product, const Shape& counts) {
  const Shape shape = site.graph.type(product).shape;
  Shape apart = {shape[0]};
  apart.insert(apart.end(), counts.begin(), counts.end());
  apart.push_back(shape[2]);
  std::vector<int64_t> perm = {0, static_cast<int64_t>(counts.size()) + 1};
  for (size_t i = 0; i < counts.size(); ++i) perm.push_back(static_cast<int64_t>(i) + 1);
  KILN_ASSIGN_OR_RETURN(const ValueId image, site.emit(ir::Reshape{apart}, {product}));
  return site.emit(ir::Transpose{perm}, {image});
}

// The filters as rows, times the rows of `x`, plus the bias.
Result<ValueId> product_with_filters(Site& site, ValueId rows) {
  const Shape w = site.graph.type(site.input(1)).shape;
  KILN_ASSIGN_OR_RETURN(const ValueId filters,
                        site.emit(ir::Reshape{{w[0], element_count(w) / w[0]}}, {site.input(1)}));
  KILN_ASSIGN_OR_RETURN(const ValueId product, site.emit(ir::MatMul{false, true}, {rows, filters}));
  if (site.node().inputs.size() < 3) return product;
  return site.emit(ir::Pointwise{ScalarFn::kAdd}, {product, site.input(2)});
}

Result<ValueId> multiply_patches(Site& site) {
  const auto* conv = site.op<ir::Conv>();
  if (!conv) return kNoValue;
  const Shape w = site.graph.type(site.input(1)).shape;
  if (!takes_patches(*conv, site.graph.type(site.input(0)).shape, w)) return kNoValue;
  if (!read_channels_last(site.graph, site.result())) return kNoValue;
  const Shape kernel(w.begin() + 2, w.end());
  const Shape counts(site.type().shape.begin() + 2, site.type().shape.end());
  KILN_ASSIGN_OR_RETURN(const ValueId rows, patches(site, counts, kernel));
  KILN_ASSIGN_OR_RETURN(const ValueId product, product_with_filters(site, rows));
  return channels_second(site, product, counts);
}

// Images of one cell: channels are all that there is, in either order.
Result<ValueId> multiply_single_cells(Site& site) {
  const auto* conv = site.op<ir::Conv>();
  if (!conv || conv->groups != 1) return kNoValue;
  const Shape x = site.graph.type(site.input(0)).shape, w = site.graph.type(site.input(1)).shape;
  const Shape y = site.type().shape;
  for (const Shape* shape : {&x, &w, &y}) {
    if (!all_are({shape->begin() + 2, shape->end()}, 1)) return kNoValue;
  }
  // What is padded away from the cell's place sees zeros alone.
  if (!all_are(conv->pads_begin, 0) || element_count(w) == 0) return kNoValue;
  KILN_ASSIGN_OR_RETURN(const ValueId rows, site.emit(ir::Reshape{{x[0], x[1]}}, {site.input(0)}));
  KILN_ASSIGN_OR_RETURN(const ValueId product, product_with_filters(site, rows));
  return site.emit(ir::Reshape{y}, {product});
}

}  // namespace

Result<bool> patch_convolutions(ir::Graph& graph, PassContext&) {
  constexpr Rule kRules[] = {multiply_patches, multiply_single_cells};
  return rewrite_nodes(graph, kRules);
}

}  // namespace kiln::clean
