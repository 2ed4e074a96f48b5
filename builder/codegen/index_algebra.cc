#include "builder/codegen/index_algebra.h"

#include <algorithm>
#include <tuple>

#include "formats/loop_ir/analysis.h"

namespace kiln::codegen {
namespace {

using loop::GatherTerm;
using loop::IndexMap;
using loop::MapTerm;

auto key(const MapTerm& term) { return std::tuple(term.dim, term.divisor, term.modulus); }
auto key(const GatherTerm& term) { return std::tuple(term.index, term.extent); }

template <class Term>
void merge(std::vector<Term>& terms, const Term& term) {
  if (term.stride == 0) return;
  const auto at =
      std::ranges::lower_bound(terms, key(term), {}, [](const Term& other) { return key(other); });
  if (at == terms.end() || key(*at) != key(term)) {
    terms.insert(at, term);
  } else if ((at->stride += term.stride) == 0) {
    terms.erase(at);
  }
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// t = inner * (t / inner) + t % inner for a term's value t.
struct TermSplit {
  MapTerm high, low;
};
std::optional<TermSplit> split(const MapTerm& term, int64_t inner) {
  if (term.modulus % inner != 0) return std::nullopt;
  TermSplit parts{term, term};
  parts.high.divisor = term.divisor * inner;
  parts.high.modulus = term.modulus / inner;
  if (parts.high.modulus == 1) parts.high.stride = 0;
  parts.low.modulus = inner;
  return parts;
}

}  // namespace

IndexMap constant_index(int64_t value) { return IndexMap{value, {}, {}}; }

IndexMap add(const IndexMap& a, const IndexMap& b) {
  IndexMap sum = a;
  sum.offset += b.offset;
  for (const MapTerm& term : b.terms) merge(sum.terms, term);
  for (const GatherTerm& gather : b.gathers) merge(sum.gathers, gather);
  return sum;
}

IndexMap scaled(const IndexMap& map, int64_t factor) {
  if (factor == 0) return {};
  IndexMap product = map;
  product.offset *= factor;
  for (MapTerm& term : product.terms) term.stride *= factor;
  for (GatherTerm& gather : product.gathers) gather.stride *= factor;
  return product;
}

IndexMap shifted(const IndexMap& map, int64_t offset) {
  IndexMap sum = map;
  sum.offset += offset;
  return sum;
}

IndexMap flatten(std::span<const IndexMap> axes, const Shape& shape) {
  const Shape strides = row_major_strides(shape);
  IndexMap flat;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (shape[a] != 1) flat = add(flat, scaled(axes[a], strides[a]));
  }
  return flat;
}

std::optional<Division> divide(const IndexMap& map, int64_t divisor,
                               const loop::LoopKernel& kernel) {
  Division result;
  for (const MapTerm& term : map.terms) {
    MapTerm part = term;
    if (term.stride % divisor == 0) {
      part.stride = term.stride / divisor;
      merge(result.quotient.terms, part);
      continue;
    }
    const int64_t step = term.stride < 0 ? -term.stride : term.stride;
    const int64_t inner = divisor / step;
    if (divisor % step != 0 || loop::term_extent(term, kernel) <= inner) {
      merge(result.remainder.terms, part);
      continue;
    }
    const bool whole_dim = term.divisor == 1 && term.modulus == 0;
    if (whole_dim && kernel.dims[term.dim].extent % inner == 0 && !result.cut) {
      result.cut = Cut{term.dim, inner};
    }
    auto parts = split(term, inner);
    if (!parts) return std::nullopt;
    if (parts->high.stride != 0) parts->high.stride = term.stride < 0 ? -1 : 1;
    merge(result.quotient.terms, parts->high);
    merge(result.remainder.terms, parts->low);
  }
  for (const GatherTerm& gather : map.gathers) {
    GatherTerm part = gather;
    const bool whole = gather.stride % divisor == 0;
    if (whole) part.stride = gather.stride / divisor;
    merge(whole ? result.quotient.gathers : result.remainder.gathers, part);
  }
  const auto range = loop::range_of(result.remainder, kernel);
  if (!range) return std::nullopt;
  result.quotient.offset = floor_div(map.offset + range->low, divisor);
  result.remainder.offset = map.offset - result.quotient.offset * divisor;
  if (result.remainder.offset + range->high >= divisor) return std::nullopt;
  return result;
}

}  // namespace kiln::codegen
