// Runs a body in two ways that share no code: node by node with the plain kernels, and lowered to
// one loop kernel that is interpreted.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "formats/result.h"

namespace kiln::codegen {

using Bytes = std::vector<std::byte>;

// Floats are normal; integers lie in [low, high], bools in {0, 1}.
Bytes random_bytes(const TensorType& type, int low, int high, std::mt19937& random);

// One dense buffer an output.
Result<std::vector<Bytes>> run_node_by_node(const ir::Graph& body,
                                            const std::vector<Bytes>& inputs);
Result<std::vector<Bytes>> run_lowered(const ir::Graph& body, const std::vector<Bytes>& inputs);

// The elements as doubles.
std::vector<double> values_of(DType dtype, const Bytes& bytes);
// Empty if equal: NaN equals NaN, floats within tolerance of each other's magnitude, the rest
// exactly.
std::string difference(DType dtype, const Bytes& got, const Bytes& want, double tolerance);

}  // namespace kiln::codegen
