// The closed set of operations. One plain struct an op: attributes only; equality is defaulted, so
// that common subexpressions are found by comparing. Inputs of an op are its node's inputs, in the
// order the comment gives. Every attribute is a number: nothing here depends on a runtime value.
//
// Adding an op: a struct here, a rule in type_rules/, a case in operation_of.cc.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "formats/loop_ir/scalar_function.h"
#include "formats/operation/operation.h"
#include "formats/tensor_type.h"

namespace kiln::ir {

using kiln::to_string;  // beside the overload below

class Graph;

// fn(x...), numpy broadcasting between the inputs. All inputs have one dtype, but for where's
// condition (bool) and pow's exponent.
struct Pointwise {
  ScalarFn fn = ScalarFn::kIdentity;
  bool operator==(const Pointwise&) const = default;
};

// x -> dtype `to`. `saturate` is ONNX's attribute for 8-bit floats.
struct Cast {
  DType to = DType::kF32;
  bool saturate = true;
  bool operator==(const Cast&) const = default;
};

// x reduced over `axes` (sorted, non-negative); kept as extent 1 when keep_dims. Floats narrower
// than 32 bits accumulate in f32.
struct Reduce {
  ReduceFn fn = ReduceFn::kSum;
  std::vector<int64_t> axes;
  bool keep_dims = true;
  bool operator==(const Reduce&) const = default;
};

// Data movement. All are views: index maps of the input.
struct Transpose {
  std::vector<int64_t> perm;
  bool operator==(const Transpose&) const = default;
};
struct Reshape {
  Shape shape;
  bool operator==(const Reshape&) const = default;
};
struct Broadcast {  // numpy broadcast of x to `shape`
  Shape shape;
  bool operator==(const Broadcast&) const = default;
};
struct Slice {  // element i of axis a is x[starts[a] + i * steps[a]], 0 <= i < sizes[a]
  std::vector<int64_t> starts, sizes, steps;  // one entry an axis; steps may be negative
  bool operator==(const Slice&) const = default;
};
struct Pad {  // x, value (one element): `value` outside; before and after are >= 0
  std::vector<int64_t> before, after;
  bool operator==(const Pad&) const = default;
};
struct Concat {  // x...
  int64_t axis = 0;
  bool operator==(const Concat&) const = default;
};
struct Gather {  // x, indices (i32 or i64; negative counts from the end): numpy.take
  int64_t axis = 0;
  bool operator==(const Gather&) const = default;
};

// a [..., M, K], b [..., K, N] -> [..., M, N]; leading dims broadcast. With transpose_a the stored
// a is [..., K, M], with transpose_b the stored b is [..., N, K]. The result has the operands'
// dtype, but that of 8-bit floats is f32.
struct MatMul {
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatMul&) const = default;
};

// x [N, C, spatial...], w [M, C/groups, kernel...] (ConvTranspose: [C, M/groups, kernel...]),
// optional bias [M].
struct Conv {
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;  // one entry a spatial dim
  int64_t groups = 1;
  bool operator==(const Conv&) const = default;
};
struct ConvTranspose {
  std::vector<int64_t> strides, dilations, pads_begin, pads_end, output_padding;
  int64_t groups = 1;
  bool operator==(const ConvTranspose&) const = default;
};

// softmax(scale * q k^T [+ mask]) v: q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] with H a
// multiple of G, optional mask broadcastable to [B, H, S, T]: bool (false = masked) or additive
// float. causal masks t > s. Scores and softmax in f32. A fully masked row yields what
// `masked_row_zero` says: zeros, or the softmax of equal scores.
struct Attention {
  double scale = 1.0;
  bool causal = false;
  double softcap = 0.0;  // 0: none
  bool masked_row_zero = false;
  bool operator==(const Attention& other) const {
    return std::bit_cast<uint64_t>(scale) == std::bit_cast<uint64_t>(other.scale) &&
           causal == other.causal && masked_row_zero == other.masked_row_zero &&
           std::bit_cast<uint64_t>(softcap) == std::bit_cast<uint64_t>(other.softcap);
  }
};

// The long tail (pooling, top-k, resize, rnn, scatter, ...): a row in opaque_ops.cc each.
struct Opaque {
  Operation operation;
  bool operator==(const Opaque&) const = default;
};

// A plugin of that name and version; `attributes` is the JSON object that the plugin reads.
struct PluginCall {
  std::string name, version, attributes;
  bool operator==(const PluginCall&) const = default;
};

// Control flow. Bodies see nothing of the outer graph: captured values are explicit inputs.
// If: condition, captures... -> outputs of the branch taken; both branches take the captures.
struct If {
  std::shared_ptr<const Graph> then_body, else_body;
  bool operator==(const If&) const = default;  // by identity
};
// Loop: max trip count (i64 scalar), condition (bool scalar), carried..., captures... ->
// carried..., scanned (stacked along a new axis 0)...
// body: iteration (i64 scalar), condition, carried..., captures... -> condition, carried...,
// scan... The builder needs the trip count: it is `trip_count`, and the condition may not end it
// early unless nothing is scanned.
struct Loop {
  std::shared_ptr<const Graph> body;
  int64_t carried = 0;      // how many of the values are carried
  int64_t trip_count = -1;  // the constant bound; -1: known at run time only (no scanned outputs)
  bool operator==(const Loop&) const = default;
};

// A group of operations that becomes one kernel or one library call: fused, timed, verified and
// reported as one thing. Node inputs and outputs are the body's, in order. One-element constants
// live inside the body; larger constants are inputs.
struct Region {
  enum class Kind : uint8_t { kLoop, kContraction, kConvolution, kAttention, kOpaque, kPlugin };
  Kind kind = Kind::kLoop;
  std::shared_ptr<const Graph> body;  // the operations it replaces; the reference runs these
  std::vector<std::string> origins;   // the ONNX nodes, for messages and the report
  std::string rule;                   // which rule formed it, "" for a single operation
  bool operator==(const Region&) const = default;
};
std::string_view to_string(Region::Kind kind);

using Op =
    std::variant<Pointwise, Cast, Reduce, Transpose, Reshape, Broadcast, Slice, Pad, Concat, Gather,
                 MatMul, Conv, ConvTranspose, Attention, Opaque, PluginCall, If, Loop, Region>;

}  // namespace kiln::ir
