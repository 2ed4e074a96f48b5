#include "builder/codegen/cuda/quick_functions.h"

#include <bit>
#include <cmath>
#include <utility>

#include "builder/codegen/cuda/cuda_text.h"

namespace kiln::codegen {
namespace {

using loop::Expr;
using loop::ExprId;
using Kind = loop::Expr::Kind;

// The relative errors of what device/quick_functions.cuh has, with some room for rounding.
constexpr double kSinCosErrors[] = {6.5e-5, 5e-7};  // of 2 and 3 terms beyond the first
constexpr double kExpError = 2e-5;
constexpr double kOnePlusErfErrors[] = {8e-5, 1.3e-5};  // of 5 and 6 terms

bool applies(const Expr& e, ScalarFn fn) { return e.kind == Kind::kApply && e.fn == fn; }

// 1 + erf(x), in either order: the erf's argument.
std::optional<ExprId> one_plus_erf(const KernelFacts& facts, const Expr& add) {
  if (!applies(add, ScalarFn::kAdd)) return std::nullopt;
  for (const auto& [one, erf] :
       {std::pair(add.args[0], add.args[1]), std::pair(add.args[1], add.args[0])}) {
    const bool is_one =
        facts.expr(one).kind == Kind::kConstant && facts.ranges[one] == Range{.low = 1, .high = 1};
    if (is_one && applies(facts.expr(erf), ScalarFn::kErf)) return facts.expr(erf).args[0];
  }
  return std::nullopt;
}

// x * (1 / c) for x / c: exact where c is a power of 2, else within one unit in the last place.
std::optional<float> reciprocal_of_constant(const KernelFacts& facts, const Expr& div) {
  const Range& c = facts.ranges[div.args[1]];
  if (c.low != c.high || c.largest() < 0x1p-100 || c.largest() > 0x1p100) return std::nullopt;
  int exponent = 0;
  const bool power = std::abs(std::frexp(c.low, &exponent)) == 0.5;
  if (!power && facts.makes_whole) return std::nullopt;
  return static_cast<float>(1 / c.low);
}

}  // namespace

std::optional<std::string> quick_text(const KernelFacts& facts, ExprId id,
                                      const std::function<std::string(ExprId)>& value,
                                      const std::function<bool(ExprId)>& known) {
  const Expr& e = facts.expr(id);
  if (e.kind != Kind::kApply || !is_float(e.dtype) || bits_of(e.dtype) > 32) return std::nullopt;
  if (e.fn == ScalarFn::kDiv) {
    const auto reciprocal = reciprocal_of_constant(facts, e);
    if (!reciprocal) return std::nullopt;
    return "op_mul<" + std::string(element_type(e.dtype)) + ">(" + value(e.args[0]) + ", " +
           constant_text(DType::kF32, std::bit_cast<uint32_t>(*reciprocal)) + ")";
  }
  const double error = facts.tolerances[id] / 4;
  if (e.fn == ScalarFn::kCos || e.fn == ScalarFn::kSin) {
    if (facts.ranges[e.args[0]].largest() > 1) return std::nullopt;
    const char* terms = error >= kSinCosErrors[0] ? "2" : error >= kSinCosErrors[1] ? "3" : "4";
    return std::string(e.fn == ScalarFn::kCos ? "cos_near_0<" : "sin_near_0<") + terms + ">(" +
           value(e.args[0]) + ")";
  }
  if (e.fn == ScalarFn::kExp && error >= kExpError) return "quick_exp(" + value(e.args[0]) + ")";
  if (e.fn == ScalarFn::kSigmoid && error >= kExpError) {
    return "quick_sigmoid(" + value(e.args[0]) + ")";
  }
  const auto x = one_plus_erf(facts, e);
  if (x && error >= kOnePlusErfErrors[1] && known(*x)) {
    const char* terms = error >= kOnePlusErfErrors[0] ? "5" : "6";
    return "quick_one_plus_erf<" + std::string(terms) + ">(" + value(*x) + ")";
  }
  return std::nullopt;
}

}  // namespace kiln::codegen
