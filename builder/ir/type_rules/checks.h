// What the type rules of several ops ask of their inputs. Errors say what was found and expected.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/result.h"
#include "formats/tensor_type.h"

namespace kiln::ir {

using Types = std::span<const TensorType>;
using Inferred = Result<std::vector<TensorType>>;

Error reject(std::string message);

// One output; an error if it has more elements than can be counted.
Inferred one(TensorType type);

Result<> expect_count(Types in, size_t least, size_t most);
Result<> expect_size(const std::vector<int64_t>& list, int64_t size, const char* what);
Result<> expect_axis(int64_t axis, int64_t rank);

// The shape to which both broadcast, by NumPy's rules.
Result<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace kiln::ir
