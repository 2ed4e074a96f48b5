// The one table of types that a scalar function takes: shared by the loop IR and type inference.
#pragma once
#include <optional>
#include <span>

#include "formats/loop_ir/scalar_function.h"
#include "formats/tensor_type.h"

namespace kiln {

// The type of fn(args...), or nullopt if the number or the types of arguments are wrong.
std::optional<DType> result_type(ScalarFn fn, std::span<const DType> args);
// Whether values of that type can be reduced by fn; the result has the same type.
bool can_reduce(ReduceFn fn, DType dtype);

}  // namespace kiln
