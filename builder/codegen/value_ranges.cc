#include "builder/codegen/value_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979;

bool is_wide_float(DType dtype) { return is_float(dtype) && bits_of(dtype) >= 16; }

// The value may be computed as an f32: beyond its largest number lies infinity.
Range around(std::initializer_list<double> ends) {
  if (std::ranges::any_of(ends, [](double end) { return std::isnan(end); })) return {};
  const auto widen = [](double end) {
    return std::abs(end) > 3.4e38 ? std::copysign(kInfinity, end) : end;
  };
  return {widen(std::min(ends)), widen(std::max(ends))};
}

Range constant_range(const Expr& e) {
  double value = std::nan("");
  if (e.dtype == DType::kF64) value = std::bit_cast<double>(e.constant);
  if (e.dtype == DType::kF32) value = std::bit_cast<float>(static_cast<uint32_t>(e.constant));
  if (e.dtype == DType::kBF16) {
    value = std::bit_cast<float>(static_cast<uint32_t>(e.constant) << 16);
  }
  if (e.dtype == DType::kF16) {
    const auto bits = static_cast<uint32_t>(e.constant);
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int mantissa = static_cast<int>(bits & 1023) + (exponent > 0 ? 1024 : 0);
    const double size = std::ldexp(mantissa, std::max(exponent, 1) - 25);
    if (exponent < 31) value = (bits >> 15 & 1) != 0 ? -size : size;
  }
  return around({value, value});
}

Range cosine_range(const Range& x) {
  if (x.largest() > kPi) return {-1, 1};
  const double nearest =
      x.low <= 0 && x.high >= 0 ? 0 : std::min(std::abs(x.low), std::abs(x.high));
  return {std::cos(x.largest()), std::cos(nearest)};
}

class RangeWalk {
 public:
  explicit RangeWalk(const loop::LoopKernel& kernel) : kernel_(kernel) {}

  std::vector<Range> run() {
    for (const Expr& e : kernel_.exprs) ranges_.push_back(is_wide_float(e.dtype) ? of(e) : Range{});
    return std::move(ranges_);
  }

 private:
  Range of(const Expr& e) const {
    switch (e.kind) {
      case Kind::kConstant:
        return constant_range(e);
      case Kind::kApply:
        return applied(e);
      case Kind::kCast: {
        // Rounding keeps an order, and does not pass what the narrow type has itself.
        if (!is_wide_float(kernel_.exprs[e.args[0]].dtype)) return {};
        const Range& x = ranges_[e.args[0]];
        const double room = e.dtype == DType::kF32 || e.dtype == DType::kF64 ? 0 : kRangeSlack / 4;
        const auto whole = [&](double end) { return end == 0 || std::abs(end) == 1; };
        return {whole(x.low) ? x.low : x.low - std::abs(x.low) * room,
                whole(x.high) ? x.high : x.high + std::abs(x.high) * room};
      }
      case Kind::kReduce:
        if (e.reduce_fn == ReduceFn::kSum) {
          const Range& x = ranges_[e.args[0]];
          return {x.low >= 0 ? 0 : -kInfinity, x.high <= 0 ? 0 : kInfinity};
        }
        return {};
      default:
        return {};
    }
  }

  Range applied(const Expr& e) const {
    const auto arg = [&](size_t a) -> const Range& { return ranges_[e.args[a]]; };
    const auto monotonic = [&](auto function) {
      return around({function(arg(0).low), function(arg(0).high)});
    };
    switch (e.fn) {
      case ScalarFn::kIdentity:
        return arg(0);
      case ScalarFn::kNeg:
        return {-arg(0).high, -arg(0).low};
      case ScalarFn::kAbs:
        return {std::max({arg(0).low, -arg(0).high, 0.0}), arg(0).largest()};
      case ScalarFn::kCos:
        return cosine_range(arg(0));
      case ScalarFn::kSin:
        if (arg(0).largest() > kPi / 2) return {-1, 1};
        return monotonic([](double x) { return std::sin(x); });
      case ScalarFn::kTanh:
        return monotonic([](double x) { return std::tanh(x); });
      case ScalarFn::kErf:
        return monotonic([](double x) { return std::erf(x); });
      case ScalarFn::kExp:
        return monotonic([](double x) { return std::exp(x); });
      case ScalarFn::kSigmoid:
        return monotonic([](double x) { return 1 / (1 + std::exp(-x)); });
      case ScalarFn::kSqrt:
        return {std::sqrt(std::max(arg(0).low, 0.0)), std::sqrt(std::max(arg(0).high, 0.0))};
      case ScalarFn::kMin:
        return {std::min(arg(0).low, arg(1).low), std::min(arg(0).high, arg(1).high)};
      case ScalarFn::kMax:
        return {std::max(arg(0).low, arg(1).low), std::max(arg(0).high, arg(1).high)};
      case ScalarFn::kAdd:
        return around({arg(0).low + arg(1).low, arg(0).high + arg(1).high});
      case ScalarFn::kSub:
        return around({arg(0).low - arg(1).high, arg(0).high - arg(1).low});
      case ScalarFn::kMul:
        if (e.args[0] == e.args[1]) {
          const double most = arg(0).largest();
          return around({0, most * most});
        }
        return around({arg(0).low * arg(1).low, arg(0).low * arg(1).high, arg(0).high * arg(1).low,
                       arg(0).high * arg(1).high});
      case ScalarFn::kWhere:
        return {std::min(arg(1).low, arg(2).low), std::max(arg(1).high, arg(2).high)};
      default:
        return {};
    }
  }

  const loop::LoopKernel& kernel_;
  std::vector<Range> ranges_;
};

// --- tolerances ---

// How many times larger the relative error of fn(x) is than x's, at most; infinite if unknown,
// never 0.
double amplification(ScalarFn fn, const Range& x) {
  const double most = x.largest();
  switch (fn) {
    case ScalarFn::kCos:
      return most < 1.5 ? std::max(most * std::tan(most), 0.5) : kInfinity;
    case ScalarFn::kSin:
      return most < 1.5 ? 1 : kInfinity;
    case ScalarFn::kTanh:
    case ScalarFn::kErf:
      return 1;
    case ScalarFn::kExp:
    case ScalarFn::kSigmoid:
      return std::max(most, 1.0);
    default:
      return kInfinity;
  }
}

class ToleranceWalk {
 public:
  ToleranceWalk(const loop::LoopKernel& kernel, const std::vector<Range>& ranges)
      : kernel_(kernel), ranges_(ranges), allowed_(kernel.exprs.size(), kMost) {}

  std::vector<double> run() {
    for (auto id = static_cast<ExprId>(kernel_.exprs.size()); id-- > 0;) {
      const Expr& e = kernel_.exprs[id];
      for (const loop::GatherTerm& gather : e.map.gathers) allow(gather.index, 0);
      if (e.kind == Kind::kApply)
        apply(id);
      else
        for (const ExprId arg : e.args) allow(arg, passed(e, arg, allowed_[id]));
    }
    return std::move(allowed_);
  }

 private:
  static constexpr double kMost = 1.0 / 512;  // keeps within kRangeSlack, too

  void allow(ExprId id, double error) { allowed_[id] = std::min(allowed_[id], error); }

  double passed(const Expr& e, ExprId arg, double own) const {
    switch (e.kind) {
      case Kind::kStore:
        if (e.dtype == DType::kBF16) return 1.0 / 512;
        return e.dtype == DType::kF16 ? 1.0 / 4096 : 0;
      case Kind::kCast:
        return is_wide_float(e.dtype) && is_wide_float(kernel_.exprs[arg].dtype) ? own : 0;
      case Kind::kReduce: {
        const bool picks = e.reduce_fn == ReduceFn::kMax || e.reduce_fn == ReduceFn::kMin;
        const bool sums = e.reduce_fn == ReduceFn::kSum && ranges_[arg].is_one_sign();
        return picks || sums ? own : 0;
      }
      default:
        return 0;
    }
  }

  void apply(ExprId id) {
    const Expr& e = kernel_.exprs[id];
    const double own = is_wide_float(e.dtype) ? allowed_[id] : 0;
    const auto all = [&](double error) {
      for (const ExprId arg : e.args) allow(arg, error);
    };
    switch (e.fn) {
      case ScalarFn::kIdentity:
      case ScalarFn::kNeg:
      case ScalarFn::kAbs:
      case ScalarFn::kSqrt:
      case ScalarFn::kReciprocal:
      case ScalarFn::kMin:
      case ScalarFn::kMax:
        return all(own);
      case ScalarFn::kMul:
      case ScalarFn::kDiv:
        return all(own / 2);
      case ScalarFn::kWhere:
        allow(e.args[0], 0);
        allow(e.args[1], own);
        return allow(e.args[2], own);
      case ScalarFn::kAdd: {
        const Range &a = ranges_[e.args[0]], &b = ranges_[e.args[1]];
        const bool together = (a.low >= 0 && b.low >= 0) || (a.high <= 0 && b.high <= 0);
        return all(together ? own : 0);
      }
      default:
        if (e.args.size() != 1) return all(0);
        return all(own * 0.75 / amplification(e.fn, ranges_[e.args[0]]));
    }
  }

  const loop::LoopKernel& kernel_;
  const std::vector<Range>& ranges_;
  std::vector<double> allowed_;
};

}  // namespace

double Range::largest() const { return std::max(std::abs(low), std::abs(high)); }

std::vector<Range> value_ranges(const loop::LoopKernel& kernel) { return RangeWalk(kernel).run(); }

std::vector<double> value_tolerances(const loop::LoopKernel& kernel,
                                     const std::vector<Range>& ranges) {
  return ToleranceWalk(kernel, ranges).run();
}

}  // namespace kiln::codegen
