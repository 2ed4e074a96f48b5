#include "formats/loop_ir/scalar_type.h"

#include <algorithm>

namespace kiln {
namespace {

bool is_number(DType dtype) { return dtype != DType::kBool; }

// Whether the function is defined on arguments of one type.
bool takes(ScalarFn fn, DType dtype) {
  switch (fn) {
    case ScalarFn::kIdentity:
    case ScalarFn::kEqual:
      return true;
    case ScalarFn::kNot:
    case ScalarFn::kAnd:
    case ScalarFn::kOr:
    case ScalarFn::kXor:
      return dtype == DType::kBool;
    case ScalarFn::kBitNot:
    case ScalarFn::kBitAnd:
    case ScalarFn::kBitOr:
    case ScalarFn::kBitXor:
      return is_integer(dtype);
    case ScalarFn::kShiftLeft:
    case ScalarFn::kShiftRight:
      return is_integer(dtype) && !is_signed_integer(dtype);
    case ScalarFn::kAbs:
    case ScalarFn::kNeg:
    case ScalarFn::kSign:
    case ScalarFn::kAdd:
    case ScalarFn::kSub:
    case ScalarFn::kMul:
    case ScalarFn::kDiv:
    case ScalarFn::kMod:
    case ScalarFn::kFmod:
    case ScalarFn::kMin:
    case ScalarFn::kMax:
    case ScalarFn::kLess:
    case ScalarFn::kGreater:
    case ScalarFn::kLessEqual:
    case ScalarFn::kGreaterEqual:
      return is_number(dtype);
    default:
      return is_float(dtype);
  }
}

}  // namespace

std::optional<DType> result_type(ScalarFn fn, std::span<const DType> args) {
  if (args.size() != static_cast<size_t>(arity(fn))) return std::nullopt;
  if (fn == ScalarFn::kWhere) {
    if (args[0] != DType::kBool || args[1] != args[2]) return std::nullopt;
    return args[1];
  }
  if (fn == ScalarFn::kPow) {
    if (!is_number(args[0]) || !is_number(args[1])) return std::nullopt;
    return args[0];
  }
  const bool uniform = std::ranges::all_of(args, [&](DType dtype) { return dtype == args[0]; });
  if (!uniform || !takes(fn, args[0])) return std::nullopt;
  return yields_bool(fn) ? DType::kBool : args[0];
}

bool can_reduce(ReduceFn fn, DType dtype) {
  const bool logical = fn == ReduceFn::kAny || fn == ReduceFn::kAll;
  return logical == (dtype == DType::kBool);
}

}  // namespace kiln
