// The closed set of scalar functions: one meaning for the graph's pointwise nodes, the loop IR, the
// host interpreter and generated device code. Semantics are ONNX's for the dtype in question:
// integers wrap, integer division truncates, float comparisons with NaN are false.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

// Numbers are stored in files: append only.
// clang-format off
enum class ScalarFn : uint8_t {
  // one argument
  kIdentity, kAbs, kNeg, kExp, kLog, kSqrt, kReciprocal, kFloor, kCeil,
  kRound,  // ties to even
  kSign, kSin, kCos, kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kTanh, kAsinh, kAcosh, kAtanh, kErf,
  kSigmoid, kNot, kBitNot, kIsNan, kIsPosInf, kIsNegInf,
  // two arguments
  kAdd, kSub, kMul, kDiv,
  kMod,   // sign of the divisor (Python)
  kFmod,  // sign of the dividend (C)
  kPow,   // result has the type of the base; the exponent's type may differ
  kMin, kMax,  // NaN if either is NaN
  kAnd, kOr, kXor, kBitAnd, kBitOr, kBitXor,
  kShiftLeft, kShiftRight,  // logical, unsigned types
  kEqual, kLess, kGreater, kLessEqual, kGreaterEqual,  // yield bool
  // three arguments
  kWhere,  // bool, a, b
};
// clang-format on
inline constexpr uint8_t kScalarFnCount = static_cast<uint8_t>(ScalarFn::kWhere) + 1;

int arity(ScalarFn fn);
std::string_view to_string(ScalarFn fn);  // "add", "less_equal"
std::optional<ScalarFn> parse_scalar_fn(std::string_view text);
// Comparisons, not, and, or, xor, is_*: the result is bool.
bool yields_bool(ScalarFn fn);

enum class ReduceFn : uint8_t { kSum, kProd, kMax, kMin, kAny, kAll };
inline constexpr uint8_t kReduceFnCount = 6;
std::string_view to_string(ReduceFn fn);
std::optional<ReduceFn> parse_reduce_fn(std::string_view text);

}  // namespace kiln
