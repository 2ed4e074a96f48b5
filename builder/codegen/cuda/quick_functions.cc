#include "builder/codegen/cuda/quick_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

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
constexpr double kGeluErrors[] = {1.5e-4, 6e-6};        // of 8 terms, and of 7 for f16

bool applies(const Expr& e, ScalarFn fn) { return e.kind == Kind::kApply && e.fn == fn; }

bool is_short_float(DType dtype) { return is_float(dtype) && bits_of(dtype) <= 32; }

std::string f32_text(double value) {
  return constant_text(DType::kF32, std::bit_cast<uint32_t>(static_cast<float>(value)));
}

// What a constant, or a value that can only be one number, is.
std::optional<double> constant_of(const KernelFacts& facts, ExprId id) {
  const Range& range = facts.ranges[id];
  return range.low == range.high ? std::optional(range.low) : std::nullopt;
}

// The argument that is not the constant, and the constant, of a function that may have them in
// either order.
std::optional<std::pair<ExprId, double>> with_constant(const KernelFacts& facts, const Expr& e) {
  for (const auto& [other, id] :
       {std::pair(e.args[0], e.args[1]), std::pair(e.args[1], e.args[0])}) {
    if (const auto constant = constant_of(facts, id)) return std::pair(other, *constant);
  }
  return std::nullopt;
}

// 1 + erf(x): the erf's argument.
std::optional<ExprId> one_plus_erf(const KernelFacts& facts, const Expr& add) {
  if (!applies(add, ScalarFn::kAdd)) return std::nullopt;
  const auto terms = with_constant(facts, add);
  if (!terms || terms->second != 1 || !applies(facts.expr(terms->first), ScalarFn::kErf)) {
    return std::nullopt;
  }
  return facts.expr(terms->first).args[0];
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

// x times a constant: the other factor of a, which is x.
std::optional<double> multiple_of(const KernelFacts& facts, ExprId a, ExprId x) {
  const Expr& e = facts.expr(a);
  if (applies(e, ScalarFn::kDiv) && e.args[0] == x) return reciprocal_of_constant(facts, e);
  if (!applies(e, ScalarFn::kMul)) return std::nullopt;
  const auto factors = with_constant(facts, e);
  return factors && factors->first == x ? std::optional(factors->second) : std::nullopt;
}

// Constants of a product and what else it multiplies.
struct Factors {
  double constant = 1;
  std::vector<ExprId> others;
};

void collect_factors(const KernelFacts& facts, ExprId id, Factors& factors) {
  const Expr& e = facts.expr(id);
  if (const auto constant = constant_of(facts, id)) {
    factors.constant *= *constant;
  } else if (applies(e, ScalarFn::kMul) && factors.others.size() < 3) {
    for (const ExprId arg : e.args) collect_factors(facts, arg, factors);
  } else {
    factors.others.push_back(id);
  }
}

// As near to the root of 1/2 as a constant of the type is.
bool is_root_of_half(double factor, DType dtype) {
  const double step = dtype == DType::kBF16 ? 0x1p-9 : dtype == DType::kF16 ? 0x1p-12 : 1e-6;
  return std::abs(factor - std::sqrt(0.5)) <= step;
}

// x (1 + erf(sqrt(1/2) x)) / 2, multiplied in any order: x.
std::optional<ExprId> gelu_of(const KernelFacts& facts, ExprId product) {
  Factors factors;
  collect_factors(facts, product, factors);
  if (factors.others.size() != 2 || factors.constant != 0.5) return std::nullopt;
  for (const auto& [x, sum] : {std::pair(factors.others[0], factors.others[1]),
                               std::pair(factors.others[1], factors.others[0])}) {
    const auto argument = one_plus_erf(facts, facts.expr(sum));
    const auto scale = argument ? multiple_of(facts, *argument, x) : std::nullopt;
    if (scale && is_root_of_half(*scale, facts.expr(*argument).dtype)) return x;
  }
  return std::nullopt;
}

// Nothing but f16 is made of it.
bool becomes_f16(const KernelFacts& facts, ExprId id) {
  for (ExprId user = id + 1; user < facts.kernel.exprs.size(); ++user) {
    const Expr& e = facts.expr(user);
    const bool narrows =
        (e.kind == Kind::kCast || e.kind == Kind::kStore) && e.dtype == DType::kF16;
    if (facts.live[user] && !narrows && std::ranges::count(facts.operands(user), id) > 0) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> gelu_text(const KernelFacts& facts, ExprId id, double error,
                                     const KnownTexts& texts) {
  if (error < kGeluErrors[1] || !applies(facts.expr(id), ScalarFn::kMul)) return std::nullopt;
  const bool roughly = error >= kGeluErrors[0];
  if (!roughly && !becomes_f16(facts, id)) return std::nullopt;
  const auto x = gelu_of(facts, id);
  if (!x || !texts.known(*x)) return std::nullopt;
  return (roughly ? "quick_gelu<8>(" : "quick_gelu<7>(") + texts.value(*x) + ")";
}

// A product and a sum rounded once, where one of the terms is a product.
std::optional<std::string> multiply_add_text(const KernelFacts& facts, const Expr& sum,
                                             const KnownTexts& texts) {
  for (const auto& [product, other] :
       {std::pair(sum.args[0], sum.args[1]), std::pair(sum.args[1], sum.args[0])}) {
    const Expr& e = facts.expr(product);
    if (!applies(e, ScalarFn::kMul) || !is_short_float(e.dtype)) continue;
    if (!texts.known(e.args[0]) || !texts.known(e.args[1])) continue;
    return "fmaf(" + texts.value(e.args[0]) + ", " + texts.value(e.args[1]) + ", " +
           texts.value(other) + ")";
  }
  return std::nullopt;
}

std::optional<std::string> quick_arithmetic(const KernelFacts& facts, ExprId id,
                                            const KnownTexts& texts) {
  const Expr& e = facts.expr(id);
  if (e.fn == ScalarFn::kDiv) {
    const auto reciprocal = reciprocal_of_constant(facts, e);
    if (!reciprocal) return std::nullopt;
    return "op_mul<" + std::string(element_type(e.dtype)) + ">(" + texts.value(e.args[0]) + ", " +
           f32_text(*reciprocal) + ")";
  }
  if (e.fn == ScalarFn::kAdd && facts.rounds_freely[id]) return multiply_add_text(facts, e, texts);
  return std::nullopt;
}

std::optional<std::string> quick_function(const KernelFacts& facts, ExprId id,
                                          const KnownTexts& texts) {
  const Expr& e = facts.expr(id);
  const double error = facts.tolerances[id] / 4;
  if (e.fn == ScalarFn::kCos || e.fn == ScalarFn::kSin) {
    if (facts.ranges[e.args[0]].largest() > 1) return std::nullopt;
    const char* terms = error >= kSinCosErrors[0] ? "2" : error >= kSinCosErrors[1] ? "3" : "4";
    return std::string(e.fn == ScalarFn::kCos ? "cos_near_0<" : "sin_near_0<") + terms + ">(" +
           texts.value(e.args[0]) + ")";
  }
  if (e.fn == ScalarFn::kExp && error >= kExpError)
    return "quick_exp(" + texts.value(e.args[0]) + ")";
  if (e.fn == ScalarFn::kSigmoid && error >= kExpError) {
    return "quick_sigmoid(" + texts.value(e.args[0]) + ")";
  }
  if (auto text = gelu_text(facts, id, error, texts)) return text;
  const auto x = one_plus_erf(facts, e);
  if (!x || error < kOnePlusErfErrors[1] || !texts.known(*x)) return std::nullopt;
  const char* terms = error >= kOnePlusErfErrors[0] ? "5" : "6";
  return "quick_one_plus_erf<" + std::string(terms) + ">(" + texts.value(*x) + ")";
}

}  // namespace

std::optional<std::string> quick_text(const KernelFacts& facts, ExprId id,
                                      const KnownTexts& texts) {
  const Expr& e = facts.expr(id);
  if (!is_short_float(e.dtype)) return std::nullopt;
  if (e.kind == Kind::kCast) {
    const ExprId from = e.args[0];
    const bool drop = facts.rounds_freely[id] && bits_of(e.dtype) >= 16 &&
                      is_short_float(facts.expr(from).dtype) && texts.known(from);
    return drop ? std::optional(texts.value(from)) : std::nullopt;
  }
  if (e.kind != Kind::kApply) return std::nullopt;
  if (auto text = quick_arithmetic(facts, id, texts)) return text;
  return quick_function(facts, id, texts);
}

std::optional<std::string> quick_step_text(const KernelFacts& facts, ExprId reduce,
                                           const std::string& sum, const KnownTexts& texts) {
  const Expr& e = facts.expr(reduce);
  if (e.reduce_fn != ReduceFn::kSum || !facts.rounds_freely[reduce]) return std::nullopt;
  const Expr& product = facts.expr(e.args[0]);
  if (!is_short_float(e.dtype) || !applies(product, ScalarFn::kMul)) return std::nullopt;
  if (!is_short_float(product.dtype)) return std::nullopt;
  if (!texts.known(product.args[0]) || !texts.known(product.args[1])) return std::nullopt;
  return "fmaf(" + texts.value(product.args[0]) + ", " + texts.value(product.args[1]) + ", " + sum +
         ")";
}

}  // namespace kiln::codegen
