#include "formats/loop_ir/scalar_function.h"

#include <array>

namespace kiln {
namespace {

struct FnRow {
  std::string_view name;
  int arity;
  bool yields_bool;
};

constexpr std::array<FnRow, kScalarFnCount> kFns = {{
    {"identity", 1, false},     {"abs", 1, false},         {"neg", 1, false},
    {"exp", 1, false},          {"log", 1, false},         {"sqrt", 1, false},
    {"reciprocal", 1, false},   {"floor", 1, false},       {"ceil", 1, false},
    {"round", 1, false},        {"sign", 1, false},        {"sin", 1, false},
    {"cos", 1, false},          {"tan", 1, false},         {"asin", 1, false},
    {"acos", 1, false},         {"atan", 1, false},        {"sinh", 1, false},
    {"cosh", 1, false},         {"tanh", 1, false},        {"asinh", 1, false},
    {"acosh", 1, false},        {"atanh", 1, false},       {"erf", 1, false},
    {"sigmoid", 1, false},      {"not", 1, true},          {"bit_not", 1, false},
    {"is_nan", 1, true},        {"is_pos_inf", 1, true},   {"is_neg_inf", 1, true},
    {"add", 2, false},          {"sub", 2, false},         {"mul", 2, false},
    {"div", 2, false},          {"mod", 2, false},         {"fmod", 2, false},
    {"pow", 2, false},          {"min", 2, false},         {"max", 2, false},
    {"and", 2, true},           {"or", 2, true},           {"xor", 2, true},
    {"bit_and", 2, false},      {"bit_or", 2, false},      {"bit_xor", 2, false},
    {"shift_left", 2, false},   {"shift_right", 2, false}, {"equal", 2, true},
    {"less", 2, true},          {"greater", 2, true},      {"less_equal", 2, true},
    {"greater_equal", 2, true}, {"where", 3, false},
}};

constexpr std::array<std::string_view, kReduceFnCount> kReduceFns = {"sum", "prod", "max",
                                                                     "min", "any",  "all"};

const FnRow& row(ScalarFn fn) { return kFns[static_cast<size_t>(fn)]; }

}  // namespace

int arity(ScalarFn fn) { return row(fn).arity; }
std::string_view to_string(ScalarFn fn) { return row(fn).name; }
bool yields_bool(ScalarFn fn) { return row(fn).yields_bool; }

std::optional<ScalarFn> parse_scalar_fn(std::string_view text) {
  for (size_t i = 0; i < kFns.size(); ++i) {
    if (kFns[i].name == text) return static_cast<ScalarFn>(i);
  }
  return std::nullopt;
}

std::string_view to_string(ReduceFn fn) { return kReduceFns[static_cast<size_t>(fn)]; }

std::optional<ReduceFn> parse_reduce_fn(std::string_view text) {
  for (size_t i = 0; i < kReduceFns.size(); ++i) {
    if (kReduceFns[i] == text) return static_cast<ReduceFn>(i);
  }
  return std::nullopt;
}

}  // namespace kiln
