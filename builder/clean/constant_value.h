// Reading and making constants, and computing what depends on constants alone.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln::clean {

// The one value that all elements have, seen through reshapes and broadcasts of a constant.
// nullopt: not constant, elements differ, or there are none. 64-bit integers round to double.
std::optional<double> splat_of(const ir::Graph& graph, ir::ValueId value);

// All elements of a constant. REQUIRES: graph.value(value).constant.
Result<std::vector<double>> read_doubles(const ir::Graph& graph, ir::ValueId value);

// A constant with these elements, each rounded to type.dtype once.
Result<ir::ValueId> add_doubles(ir::Graph& graph, std::string name, const TensorType& type,
                                std::span<const double> elements);

// The bytes of a value that depends on constants alone, computed with the host's plain kernels;
// nullopt if it depends on more or any step is larger than max_bytes.
std::optional<SharedBytes> evaluate(const ir::Graph& graph, ir::ValueId value, int64_t max_bytes);

// Dense bytes from one dtype to another, as the Cast operation does it.
Result<SharedBytes> convert(const TensorType& type, const SharedBytes& bytes, DType to);

}  // namespace kiln::clean
