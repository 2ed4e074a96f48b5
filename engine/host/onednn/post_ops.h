// What a oneDNN primitive does to its result before it is stored: attribute "post_ops", a list of
//   bias                 adds the next input, one value an output channel (matmul: a column)
//   add                  adds the next input, which has the result's shape
//   relu, tanh, sigmoid, swish, hard_swish, gelu_erf, gelu_tanh
//   leaky_relu:SLOPE, elu:ALPHA, clip:LOW:HIGH, linear:FACTOR:TERM
#pragma once
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "engine/host/attributes.h"
#include "engine/host/kernel.h"

namespace kiln::host {

struct PostOp {
  enum class Kind : uint8_t { kBias, kAdd, kEltwise } kind;
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
};

Result<std::vector<PostOp>> post_ops(const Operation& operation);
// Extra inputs that the list takes, from input 2 on; checks their types.
Result<> check_post_inputs(const Operation& operation, const std::vector<PostOp>& ops,
                           InputTypes inputs, const TensorType& result, int64_t channels);

}  // namespace kiln::host
