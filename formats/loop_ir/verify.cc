// Soundness of untrusted kernels: whatever passes here can be run without leaving a buffer, in time
// and memory that the buffers' sizes justify. Gathered indices alone are checked while running.
#include <algorithm>
#include <string>

#include "formats/loop_ir/analysis.h"
#include "formats/loop_ir/loop_kernel.h"
#include "formats/loop_ir/scalar_type.h"

namespace kiln::loop {
namespace {

constexpr size_t kMaxExprs = 1 << 12;
constexpr size_t kMaxBuffers = 1 << 12;
constexpr size_t kMaxTerms = 64;
constexpr int64_t kMaxElements = int64_t{1} << 58;
// Points without an element in any buffer that a kernel may have, and times that elements may be
// visited: room for any body worth fusing, none for a damaged extent.
constexpr int64_t kFreePoints = int64_t{1} << 26;
constexpr int64_t kVisits = int64_t{1} << 12;

Error bad(const std::string& what) { return {ErrorCode::kCorruptData, "loop kernel: " + what}; }

class Verifier {
 public:
  explicit Verifier(const LoopKernel& kernel) : kernel_(kernel) {}

  Result<> run() {
    KILN_RETURN_IF_ERROR(check_dims());
    KILN_RETURN_IF_ERROR(check_buffers());
    if (kernel_.exprs.size() > kMaxExprs) return bad("more than 4096 exprs");
    for (id_ = 0; id_ < kernel_.exprs.size(); ++id_) {
      KILN_RETURN_IF_ERROR(check_references(kernel_.exprs[id_]));
    }
    varying_ = varying_dims(kernel_);
    for (id_ = 0; id_ < kernel_.exprs.size(); ++id_) {
      KILN_RETURN_IF_ERROR(check_expr(kernel_.exprs[id_]));
    }
    return check_outputs_written();
  }

 private:
  Error here(const std::string& what) const {
    return bad("expr " + std::to_string(id_) + ": " + what);
  }

  Result<> check_dims() {
    if (kernel_.dims.size() > kMaxDims) return bad("more than 24 dims");
    for (const Dim& dim : kernel_.dims) {
      if (dim.extent < 0) return bad("negative extent " + std::to_string(dim.extent));
      all_ = all_ << 1 | 1;
    }
    return Ok();
  }

  Result<> check_buffers() {
    if (kernel_.buffers.size() > kMaxBuffers) return bad("more than 4096 buffers");
    int64_t total = 0;
    bool outputs = false;
    for (const Buffer& buffer : kernel_.buffers) {
      if (static_cast<uint8_t>(buffer.dtype) >= kDTypeCount) return bad("buffer of unknown dtype");
      if (buffer.elements < 0 || buffer.elements > kMaxElements - total) {
        return bad("buffers of " + std::to_string(buffer.elements) + " elements and more");
      }
      if (outputs && !buffer.output) return bad("an input after an output");
      outputs = buffer.output;
      total += buffer.elements;
    }
    const auto count = points(kernel_, all_);
    if (!count || *count - kFreePoints > __int128{total} * kVisits) {
      return bad("dims make " + (count ? std::to_string(*count) : "over 2^62") +
                 " points for buffers of " + std::to_string(total) + " elements");
    }
    return Ok();
  }

  Result<> check_map(const IndexMap& map) const {
    if (map.terms.size() > kMaxTerms || map.gathers.size() > kMaxTerms) {
      return here("a map of more than 64 terms");
    }
    for (const MapTerm& term : map.terms) {
      if (term.dim >= kernel_.dims.size()) return here("no dim " + std::to_string(term.dim));
      if (term.divisor < 1 || term.modulus < 0) return here("divisor or modulus below 1");
    }
    for (const GatherTerm& gather : map.gathers) {
      if (gather.index >= id_) return here("a gather by a later expr");
      if (!is_integer(kernel_.exprs[gather.index].dtype)) return here("a gather by a non-integer");
      if (gather.extent < 0) return here("negative gather extent");
    }
    if (!range_of(map, kernel_)) return here("a map beyond 2^61");
    return Ok();
  }

  Result<> check_references(const Expr& expr) const {
    using Kind = Expr::Kind;
    if (static_cast<uint8_t>(expr.kind) > static_cast<uint8_t>(Kind::kStore)) {
      return here("unknown kind");
    }
    if (static_cast<uint8_t>(expr.dtype) >= kDTypeCount) return here("unknown dtype");
    if (static_cast<uint8_t>(expr.fn) >= kScalarFnCount) return here("unknown function");
    if (static_cast<uint8_t>(expr.reduce_fn) >= kReduceFnCount) return here("unknown reduction");
    for (const ExprId arg : expr.args) {
      if (arg >= id_) return here("argument " + std::to_string(arg) + " is not an earlier expr");
      if (kernel_.exprs[arg].kind == Kind::kStore) return here("a store has no value");
    }
    size_t args = 1;
    if (expr.kind <= Kind::kLoad) args = 0;
    if (expr.kind == Kind::kApply) args = static_cast<size_t>(arity(expr.fn));
    if (expr.args.size() != args) {
      return here("has " + std::to_string(expr.args.size()) + " arguments, expected " +
                  std::to_string(args));
    }
    KILN_RETURN_IF_ERROR(check_map(expr.map));
    if (expr.bounds.size() > kMaxTerms) return here("more than 64 bounds");
    for (const Bound& bound : expr.bounds) {
      KILN_RETURN_IF_ERROR(check_map(bound.map));
      if (!bound.map.gathers.empty()) return here("a gather in a bound");
    }
    const bool reads_or_writes = expr.kind == Kind::kLoad || expr.kind == Kind::kStore;
    if (!expr.map.gathers.empty() && expr.kind != Kind::kLoad) return here("a stray gather");
    if (!expr.bounds.empty() && expr.kind != Kind::kLoad) return here("a stray bound");
    if (!expr.map.terms.empty() && !reads_or_writes && expr.kind != Kind::kIota) {
      return here("a stray map");
    }
    if (reads_or_writes && expr.buffer >= kernel_.buffers.size()) {
      return here("no buffer " + std::to_string(expr.buffer));
    }
    return Ok();
  }

  Result<> check_expr(const Expr& expr) {
    const bool after_store = id_ > 0 && kernel_.exprs[id_ - 1].kind == Expr::Kind::kStore;
    if (after_store && expr.kind != Expr::Kind::kStore) return here("follows a store");
    switch (expr.kind) {
      case Expr::Kind::kConstant:
        return Ok();
      case Expr::Kind::kIota:
        if (expr.dtype == DType::kI32 || expr.dtype == DType::kI64) return Ok();
        return here("an iota of " + std::string(to_string(expr.dtype)));
      case Expr::Kind::kLoad:
        return check_load(expr);
      case Expr::Kind::kApply:
        return check_apply(expr);
      case Expr::Kind::kCast:
        return Ok();
      case Expr::Kind::kReduce:
        if (expr.dtype != kernel_.exprs[expr.args[0]].dtype) return here("changes its dtype");
        if (!can_reduce(expr.reduce_fn, expr.dtype)) return here("reduces a type that it cannot");
        return Ok();
      case Expr::Kind::kStore:
        return check_store(expr);
    }
    return Ok();
  }

  Result<> check_apply(const Expr& expr) const {
    std::vector<DType> types;
    for (const ExprId arg : expr.args) types.push_back(kernel_.exprs[arg].dtype);
    const auto type = result_type(expr.fn, types);
    if (type && *type == expr.dtype) return Ok();
    return here(std::string(to_string(expr.fn)) + " with types that it does not take");
  }

  // The bound narrows the load's map where the map is factor * bound.map + rest.
  static std::optional<int64_t> factor_of(const Bound& bound, const IndexMap& map) {
    std::optional<int64_t> factor;
    if (bound.map.terms.empty()) return std::nullopt;
    for (const MapTerm& term : bound.map.terms) {
      const auto same = [&](const MapTerm& other) {
        return other.dim == term.dim && other.divisor == term.divisor &&
               other.modulus == term.modulus;
      };
      const auto found = std::ranges::find_if(map.terms, same);
      if (std::ranges::count_if(bound.map.terms, same) != 1) return std::nullopt;
      if (std::ranges::count_if(map.terms, same) != 1) return std::nullopt;
      if (found == map.terms.end() || term.stride == 0) return std::nullopt;
      if (found->stride % term.stride != 0) return std::nullopt;
      const int64_t ratio = found->stride / term.stride;
      if (factor && *factor != ratio) return std::nullopt;
      factor = ratio;
    }
    return factor;
  }

  // The interval of values of bound.map where it and all bounds on the same terms hold.
  struct Wide {
    __int128 low, high;
  };
  std::optional<Wide> allowed(const Bound& bound, const std::vector<Bound>& all) const {
    const auto whole = range_of(bound.map, kernel_);
    if (!whole) return std::nullopt;
    Wide range{whole->low, whole->high};
    for (const Bound& other : all) {
      if (other.map.terms != bound.map.terms) continue;
      const __int128 shift = __int128{bound.map.offset} - other.map.offset;
      range.low = std::max(range.low, other.low + shift);
      range.high = std::min(range.high, other.high - 1 + shift);
    }
    return range;
  }

  // The interval of addresses where all bounds hold, or wider.
  std::optional<Interval> address_range(const Expr& expr) const {
    IndexMap rest = expr.map;
    __int128 low = 0, high = 0;
    for (const Bound& bound : expr.bounds) {
      const auto factor = factor_of(bound, rest);
      const auto range = allowed(bound, expr.bounds);
      if (!factor || !range) continue;
      const auto [first, last] = *range;
      if (first > last) return Interval{0, -1};  // never read
      const __int128 offset = rest.offset - __int128{*factor} * bound.map.offset;
      if (offset > (int64_t{1} << 61) || offset < -(int64_t{1} << 61)) return std::nullopt;
      low += *factor >= 0 ? *factor * first : *factor * last;
      high += *factor >= 0 ? *factor * last : *factor * first;
      rest.offset = static_cast<int64_t>(offset);
      for (const MapTerm& term : bound.map.terms) {
        std::erase_if(rest.terms, [&](const MapTerm& other) {
          return other.dim == term.dim && other.divisor == term.divisor &&
                 other.modulus == term.modulus;
        });
      }
    }
    const auto remaining = range_of(rest, kernel_);
    if (!remaining) return std::nullopt;
    low += remaining->low;
    high += remaining->high;
    const __int128 limit = __int128{1} << 62;
    if (low < -limit || high > limit) return std::nullopt;
    return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
  }

  bool never_runs(DimSet dims) const {
    for (size_t d = 0; d < kernel_.dims.size(); ++d) {
      const bool counts = (dims >> d & 1) || !kernel_.dims[d].reduced;
      if (counts && kernel_.dims[d].extent == 0) return true;
    }
    return false;
  }

  Result<> check_load(const Expr& expr) const {
    const Buffer& buffer = kernel_.buffers[expr.buffer];
    if (buffer.output) return here("loads from an output");
    if (expr.dtype != buffer.dtype) return here("loads another dtype than its buffer's");
    if (never_runs(varying_[id_])) return Ok();
    const auto range = address_range(expr);
    if (range && range->low > range->high) return Ok();
    if (!range || range->low < 0 || range->high >= buffer.elements) {
      return here("loads " +
                  (range ? std::to_string(range->low) + " to " + std::to_string(range->high)
                         : std::string("anywhere")) +
                  " of a buffer of " + std::to_string(buffer.elements) + " elements");
    }
    return Ok();
  }

  Result<> check_store(const Expr& expr) {
    const Buffer& buffer = kernel_.buffers[expr.buffer];
    if (!buffer.output) return here("stores to an input");
    if (written_.empty()) written_.resize(kernel_.buffers.size());
    if (written_[expr.buffer]) return here("stores to an output a second time");
    written_[expr.buffer] = true;
    if (expr.dtype != buffer.dtype || kernel_.exprs[expr.args[0]].dtype != buffer.dtype) {
      return here("stores another dtype than its buffer's");
    }
    const DimSet reduced = reduced_dims(kernel_);
    const bool every_point = ((varying_[expr.args[0]] | dims_of(expr.map)) & reduced) != 0;
    const DimSet dims = every_point ? all_ : all_ & ~reduced;
    const auto count = points(kernel_, dims);
    if (!count || *count != buffer.elements) {
      return here("stores at " + (count ? std::to_string(*count) : "too many") +
                  " points into a buffer of " + std::to_string(buffer.elements) + " elements");
    }
    if (*count == 0) return Ok();
    const auto range = range_of(expr.map, kernel_);
    if (!range || range->low < 0 || range->high >= buffer.elements) {
      return here("stores outside of its buffer");
    }
    if (!is_injective(expr.map, dims, kernel_)) return here("stores twice to one element");
    return Ok();
  }

  Result<> check_outputs_written() const {
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      if (kernel_.buffers[b].output && (written_.empty() || !written_[b])) {
        return bad("output buffer " + std::to_string(b) + " is never written");
      }
    }
    return Ok();
  }

  const LoopKernel& kernel_;
  DimSet all_ = 0;
  ExprId id_ = 0;
  std::vector<DimSet> varying_;
  std::vector<bool> written_;
};

}  // namespace

Result<> verify(const LoopKernel& kernel) { return Verifier(kernel).run(); }

}  // namespace kiln::loop
