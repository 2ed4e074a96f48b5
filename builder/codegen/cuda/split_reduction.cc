#include "builder/codegen/cuda/split_reduction.h"

#include <algorithm>
#include <map>

namespace kiln::codegen {
namespace {

using loop::DimSet;
using loop::Expr;
using loop::ExprId;
using loop::IndexMap;
using loop::LoopKernel;
using Kind = loop::Expr::Kind;
using Place = PartKernel::Place;

constexpr int64_t kMostRows = int64_t{1} << 24;

Error unsplit(const std::string& why) { return {ErrorCode::kUnsupported, "no split: " + why}; }

// Parts and results are kept as they are computed.
DType computed_type(DType dtype) {
  return is_float(dtype) && dtype != DType::kF64 ? DType::kF32 : dtype;
}

IndexMap row_of(const LoopKernel& kernel, int64_t stride) {
  IndexMap map;
  for (auto d = static_cast<uint32_t>(kernel.dims.size()); d-- > 0;) {
    if (kernel.dims[d].reduced) continue;
    map.terms.push_back({d, 1, 0, stride});
    stride *= std::max<int64_t>(kernel.dims[d].extent, 1);
  }
  return map;
}

class Splitter {
 public:
  Splitter(const LoopKernel& kernel, uint32_t parts) : rest_(kernel), wanted_(parts) {
    for (size_t b = 0; b < kernel.buffers.size(); ++b) places_.push_back({false, b});
  }

  Result<SplitKernels> run() {
    if (KernelFacts(rest_).levels == 1) return unsplit("the kernel does not reduce");
    while (true) {
      const KernelFacts facts(rest_);
      if (facts.levels == 1) break;
      KILN_RETURN_IF_ERROR(choose_cut(facts));
      std::map<ExprId, Place> partial;
      for (ExprId id = 0; id < rest_.exprs.size(); ++id) {
        if (facts.live[id] && facts.level[id] == 1 && rest_.exprs[id].kind == Kind::kReduce) {
          partial[id] = reserve(id, rows() * parts_);
        }
      }
      add_partial(partial);
      if (facts.levels == 2 && !stores_inside(facts)) {
        add_last(partial);
        return std::move(result_);
      }
      add_finish(partial);
    }
    add_stores(true);
    add_stores(false);
    return std::move(result_);
  }

 private:
  int64_t rows() const {
    const KernelFacts facts(rest_);
    return facts.extent(facts.parallel);
  }

  static bool stores_inside(const KernelFacts& facts) {
    for (ExprId id = 0; id < facts.kernel.exprs.size(); ++id) {
      if (facts.expr(id).kind == Kind::kStore && facts.stores_every_point(id)) return true;
    }
    return false;
  }

  // The reduced dim that can be cut into most parts: every map walks it in equal steps.
  Result<> choose_cut(const KernelFacts& facts) {
    parts_ = 1;
    for (uint32_t d = 0; d < rest_.dims.size(); ++d) {
      if (!rest_.dims[d].reduced || !is_affine(d)) continue;
      for (int64_t parts = wanted_; parts > parts_; --parts) {
        if (rest_.dims[d].extent % parts != 0) continue;
        cut_ = d;
        parts_ = parts;
      }
    }
    if (parts_ == 1) return unsplit("no reduced dim can be cut evenly");
    if (facts.extent(facts.parallel) > kMostRows) return unsplit("too many rows");
    return Ok();
  }

  bool is_affine(uint32_t dim) const {
    const auto affine = [&](const IndexMap& map) {
      return std::ranges::all_of(map.terms, [&](const loop::MapTerm& term) {
        const bool whole = term.modulus == 0 || term.modulus >= rest_.dims[dim].extent;
        return term.dim != dim || (term.divisor == 1 && whole);
      });
    };
    return std::ranges::all_of(rest_.exprs, [&](const Expr& e) {
      return affine(e.map) &&
             std::ranges::all_of(e.bounds, [&](auto& bound) { return affine(bound.map); });
    });
  }

  // --- pieces of kernels ---

  Place reserve(ExprId reduce, int64_t elements) {
    const int64_t bits = bits_of(computed_type(rest_.exprs[reduce].dtype)) * elements;
    const Place place{true, result_.workspace_bytes};
    result_.workspace_bytes += (static_cast<uint64_t>(bits) / 8 + 256) / 256 * 256;
    return place;
  }

  static uint32_t add_buffer(PartKernel& part, DType dtype, int64_t elements, bool output,
                             Place place) {
    part.kernel.buffers.push_back({dtype, elements, output});
    part.places.push_back(place);
    return static_cast<uint32_t>(part.kernel.buffers.size() - 1);
  }

  // The rest without its stores.
  PartKernel without_stores() const {
    PartKernel part{rest_, places_};
    std::erase_if(part.kernel.exprs, [](const Expr& e) { return e.kind == Kind::kStore; });
    return part;
  }

  static Expr store_of(ExprId value, DType dtype, uint32_t buffer, IndexMap map) {
    Expr e{.kind = Kind::kStore, .dtype = dtype};
    e.args = {value};
    e.buffer = buffer;
    e.map = std::move(map);
    return e;
  }
  static Expr load_of(DType dtype, uint32_t buffer, IndexMap map) {
    Expr e{.kind = Kind::kLoad, .dtype = dtype};
    e.buffer = buffer;
    e.map = std::move(map);
    return e;
  }

  // --- kernels ---

  void add_partial(const std::map<ExprId, Place>& partial) {
    PartKernel part = without_stores();
    LoopKernel& k = part.kernel;
    const auto number = static_cast<uint32_t>(k.dims.size());
    const int64_t inner = k.dims[cut_].extent / parts_;
    k.dims[cut_].extent = inner;
    k.dims.push_back({parts_, false});
    const auto cut = [&](IndexMap& map) {
      for (size_t t = 0, count = map.terms.size(); t < count; ++t) {
        if (map.terms[t].dim != cut_) continue;
        map.terms[t].modulus = 0;
        map.terms.push_back({number, 1, 0, map.terms[t].stride * inner});
      }
    };
    for (Expr& e : k.exprs) {
      cut(e.map);
      for (loop::Bound& bound : e.bounds) cut(bound.map);
    }
    for (const auto& [id, place] : partial) {
      const DType dtype = computed_type(k.exprs[id].dtype);
      const uint32_t buffer = add_buffer(part, dtype, rows() * parts_, true, place);
      IndexMap map = row_of(rest_, parts_);
      map.terms.push_back({number, 1, 0, 1});
      k.exprs.push_back(store_of(id, dtype, buffer, std::move(map)));
    }
    result_.parts.push_back(std::move(part));
  }

  // Adds up the parts; from then on the rest loads the sums.
  void add_finish(const std::map<ExprId, Place>& partial) {
    PartKernel part;
    const int64_t count = rows();
    part.kernel.dims = {{count, false}, {parts_, true}};
    std::vector<ExprId> sums;
    std::vector<Place> to;
    for (const auto& [id, place] : partial) {
      Expr reduce = rest_.exprs[id];
      reduce.dtype = computed_type(reduce.dtype);
      const uint32_t from = add_buffer(part, reduce.dtype, count * parts_, false, place);
      part.kernel.exprs.push_back(
          load_of(reduce.dtype, from, {0, {{0, 1, 0, parts_}, {1, 1, 0, 1}}, {}}));
      reduce.args = {static_cast<ExprId>(part.kernel.exprs.size() - 1)};
      part.kernel.exprs.push_back(reduce);
      sums.push_back(static_cast<ExprId>(part.kernel.exprs.size() - 1));
      to.push_back(reserve(id, count));
      const auto buffer = static_cast<uint32_t>(rest_.buffers.size());
      rest_.buffers.push_back({reduce.dtype, count, false});
      places_.push_back(to.back());
      rest_.exprs[id] = load_of(reduce.dtype, buffer, row_of(rest_, 1));
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      const DType dtype = part.kernel.exprs[sums[i]].dtype;
      const uint32_t buffer = add_buffer(part, dtype, count, true, to[i]);
      part.kernel.exprs.push_back(store_of(sums[i], dtype, buffer, {0, {{0, 1, 0, 1}}, {}}));
    }
    result_.parts.push_back(std::move(part));
  }

  // Adds up the parts and goes on to the end: nothing more happens at every point.
  void add_last(const std::map<ExprId, Place>& partial) {
    PartKernel part{rest_, places_};
    LoopKernel& k = part.kernel;
    for (loop::Dim& dim : k.dims) dim.extent = dim.reduced ? 1 : dim.extent;
    const auto number = static_cast<uint32_t>(k.dims.size());
    k.dims.push_back({parts_, true});
    for (const auto& [id, place] : partial) {
      // In the place of what was reduced: its parts.
      const DType dtype = computed_type(k.exprs[id].dtype);
      const uint32_t buffer = add_buffer(part, dtype, rows() * parts_, false, place);
      IndexMap map = row_of(rest_, parts_);
      map.terms.push_back({number, 1, 0, 1});
      added_.push_back({id, load_of(dtype, buffer, std::move(map))});
    }
    insert_loads(k);
    result_.parts.push_back(std::move(part));
  }

  // Puts each load just ahead of the reduction that is to read it.
  void insert_loads(LoopKernel& k) {
    std::vector<Expr> exprs;
    std::vector<ExprId> moved(k.exprs.size());
    for (ExprId id = 0; id < k.exprs.size(); ++id) {
      Expr e = k.exprs[id];
      for (ExprId& arg : e.args) arg = moved[arg];
      for (loop::GatherTerm& gather : e.map.gathers) gather.index = moved[gather.index];
      const auto load = std::ranges::find(added_, id, &Added::reduce);
      if (load != added_.end()) {
        exprs.push_back(load->load);
        e.args = {static_cast<ExprId>(exprs.size() - 1)};
      }
      exprs.push_back(std::move(e));
      moved[id] = static_cast<ExprId>(exprs.size() - 1);
    }
    k.exprs = std::move(exprs);
  }

  // What is stored at every point, then what is stored once a row.
  void add_stores(bool inside) {
    const KernelFacts facts(rest_);
    PartKernel part = without_stores();
    bool any = false;
    for (ExprId id = 0; id < rest_.exprs.size(); ++id) {
      const Expr& e = rest_.exprs[id];
      if (e.kind != Kind::kStore || facts.stores_every_point(id) != inside) continue;
      part.kernel.exprs.push_back(e);
      any = true;
    }
    for (loop::Dim& dim : part.kernel.dims) {
      if (dim.reduced && !inside) dim.extent = 1;
      dim.reduced = false;
    }
    if (any) result_.parts.push_back(std::move(part));
  }

  struct Added {
    ExprId reduce;
    Expr load;
  };

  LoopKernel rest_;  // what is still to be done
  std::vector<Place> places_;
  uint32_t wanted_;
  uint32_t cut_ = 0;
  int64_t parts_ = 1;
  std::vector<Added> added_;
  SplitKernels result_;
};

}  // namespace

Result<SplitKernels> split_reductions(const LoopKernel& kernel, uint32_t parts) {
  return Splitter(kernel, parts).run();
}

}  // namespace kiln::codegen
