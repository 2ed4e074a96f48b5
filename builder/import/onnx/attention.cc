// Attention of operator sets 23 to 25: an ir::Attention with its views, or spelled out when the
// scores themselves are an output.
#include <cmath>
#include <limits>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Heads {
  ValueId query, key, value;  // [B, H, S, D], [B, G, T, D], [B, G, T, E]
  bool merged = false;        // inputs and output are [B, S, H * D]
  int64_t past = 0;
};

int64_t extent(NodeContext& c, ValueId x, size_t axis) { return c.shape(x).at(axis); }

// [B, S, H * D] -> [B, H, S, D]
Result<ValueId> split_heads(NodeContext& c, ValueId x, int64_t heads, const char* attribute) {
  const Shape shape = c.shape(x);
  if (heads < 1 || shape[2] % heads != 0) {
    return c.fail(std::string(attribute) + " is " + std::to_string(heads) + ", input is " +
                  to_string(c.type(x)));
  }
  return c.transpose(c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Result<Heads> read_heads(NodeContext& c) {
  Heads h{c.input(0), c.input(1), c.input(2)};
  for (ValueId x : {h.query, h.key, h.value}) {
    if (c.rank(x) != c.rank(h.query) || (c.rank(x) != 3 && c.rank(x) != 4)) {
      return c.fail("query, key and value are " + to_string(c.type(h.query)) + ", " +
                    to_string(c.type(h.key)) + " and " + to_string(c.type(h.value)) +
                    ", expected rank 3 or 4");
    }
  }
  h.merged = c.rank(h.query) == 3;
  if (h.merged) {
    const int64_t q_heads = c.get_int("q_num_heads", 0), kv_heads = c.get_int("kv_num_heads", 0);
    KILN_ASSIGN_OR_RETURN(h.query, split_heads(c, h.query, q_heads, "q_num_heads"));
    KILN_ASSIGN_OR_RETURN(h.key, split_heads(c, h.key, kv_heads, "kv_num_heads"));
    KILN_ASSIGN_OR_RETURN(h.value, split_heads(c, h.value, kv_heads, "kv_num_heads"));
  }
  if (c.has(4) != c.has(5)) return c.fail("past_key and past_value must come together");
  if (c.has(4)) {
    h.past = extent(c, c.input(4), 2);
    h.key = c.concat({c.input(4), h.key}, 2);
    h.value = c.concat({c.input(5), h.value}, 2);
  }
  if (c.failed()) return *c.error();
  return h;
}

// 0, 1, ... n - 1 along one axis of rank 4.
ValueId positions(NodeContext& c, int64_t count, size_t axis, int64_t offset) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i + offset);
  Shape shape(4, 1);
  shape[axis] = count;
  return c.reshape(c.ints(values), shape);
}

// Who may see whom: conditions that must all hold, and a float bias.
struct Mask {
  std::vector<ValueId> allowed;
  ValueId bias = kNoValue;
  bool causal = false;  // from the top left, left to the operation
};

// A mask that is shorter than the keys hides the rest.
ValueId widen_mask(NodeContext& c, ValueId mask, int64_t keys) {
  const int64_t missing = keys - c.shape(mask).back();
  if (missing <= 0) return mask;
  std::vector<int64_t> before(c.shape(mask).size(), 0), after = before;
  after.back() = missing;
  const DType dtype = c.dtype(mask);
  return c.pad(mask, before, after, c.scalar(dtype == DType::kBool ? 0 : -kInfinity, dtype));
}

Result<Mask> read_mask(NodeContext& c, const Heads& h) {
  const int64_t queries = extent(c, h.query, 2), keys = extent(c, h.key, 2);
  Mask mask;
  if (c.has(3)) {
    if (c.input_type(3).rank() < 1) return c.fail("attn_mask is a scalar");
    const ValueId given = widen_mask(c, c.input(3), keys);
    if (c.dtype(given) == DType::kBool)
      mask.allowed.push_back(given);
    else
      mask.bias = given;
  }
  // Position of each query among the keys.
  ValueId query = positions(c, queries, 2, h.past);
  const ValueId key = positions(c, keys, 3, 0);
  if (c.has(6)) {
    const ValueId lengths =
        c.reshape(c.cast(c.input(6), DType::kI64), {c.input_type(6).elements(), 1, 1, 1});
    mask.allowed.push_back(c.apply(ScalarFn::kLess, {key, lengths}));
    if (!c.has(4)) {
      const ValueId offset = c.sub(lengths, c.reshape(c.ints({queries}), {}));
      query = c.add(positions(c, queries, 2, 0), offset);
    }
  }
  const bool causal = c.get_int("is_causal", 0) != 0;
  const int64_t left = c.get_int("left_window_size", -1),
                right = c.get_int("right_window_size", -1);
  mask.causal = causal && h.past == 0 && !c.has(6);
  if (causal && !mask.causal) {
    mask.allowed.push_back(c.apply(ScalarFn::kLessEqual, {key, query}));
  }
  const auto distance = [&](int64_t n) { return c.reshape(c.ints({n}), {}); };
  if (left >= 0) {
    mask.allowed.push_back(c.apply(ScalarFn::kLessEqual, {c.sub(query, key), distance(left)}));
  }
  if (right >= 0) {
    mask.allowed.push_back(c.apply(ScalarFn::kLessEqual, {c.sub(key, query), distance(right)}));
  }
  return mask;
}

// One tensor for everything in the mask, or kNoValue.
ValueId combine(NodeContext& c, const Mask& mask) {
  if (mask.allowed.empty()) return mask.bias;
  ValueId allowed = mask.allowed[0];
  for (size_t i = 1; i < mask.allowed.size(); ++i) {
    allowed = c.apply(ScalarFn::kAnd, {allowed, mask.allowed[i]});
  }
  if (mask.bias == kNoValue) return allowed;
  return c.where(allowed, mask.bias, c.scalar(-kInfinity, c.dtype(mask.bias)));
}

// [B, G, T, D] -> [B, H, T, D], each head repeated H / G times.
ValueId repeat_heads(NodeContext& c, ValueId x, int64_t heads) {
  const Shape s = c.shape(x);
  if (s[1] == heads || s[1] < 1) return x;
  const ValueId wide = c.broadcast(c.unsqueeze(x, {2}), {s[0], s[1], heads / s[1], s[2], s[3]});
  return c.reshape(wide, {s[0], heads / s[1] * s[1], s[2], s[3]});
}

struct Parameters {
  double scale, softcap;
  int64_t mode;  // what qk_matmul_output is: 0 scores, 1 capped, 2 with the mask, 3 softmax
};

// y and qk_matmul_output, spelled out in f32.
std::pair<ValueId, ValueId> expanded(NodeContext& c, const Heads& h, Mask mask,
                                     const Parameters& p) {
  const DType from = c.dtype(h.query), wide = compute_dtype(from);
  const int64_t heads = extent(c, h.query, 1);
  const int64_t queries = extent(c, h.query, 2), keys = extent(c, h.key, 2);
  if (mask.causal) {
    mask.allowed.push_back(
        c.apply(ScalarFn::kLessEqual, {positions(c, keys, 3, 0), positions(c, queries, 2, 0)}));
  }
  const ValueId key = c.cast(repeat_heads(c, h.key, heads), wide);
  const ValueId value = c.cast(repeat_heads(c, h.value, heads), wide);
  ValueId scores =
      c.mul(c.matmul(c.cast(h.query, wide), key, false, true), c.scalar(p.scale, wide));
  ValueId shown = scores;
  if (p.softcap > 0) {
    const ValueId cap = c.scalar(p.softcap, wide);
    scores = c.mul(c.apply(ScalarFn::kTanh, {c.div(scores, cap)}), cap);
  }
  if (p.mode == 1) shown = scores;
  ValueId bias = combine(c, mask);
  if (bias != kNoValue && c.dtype(bias) == DType::kBool) {
    bias = c.where(bias, c.scalar(0, wide), c.scalar(-kInfinity, wide));
  }
  if (bias != kNoValue) scores = c.add(scores, c.cast(bias, wide));
  if (p.mode == 2) shown = scores;
  ValueId weights = c.softmax(scores, {3});
  if (bias != kNoValue) {
    const ValueId best = c.reduce(ReduceFn::kMax, c.cast(bias, wide), {c.rank(bias) - 1});
    const ValueId hidden = c.apply(ScalarFn::kIsNegInf, {best});
    weights = c.where(hidden, c.scalar(0, wide), weights);
  }
  if (p.mode == 3) shown = weights;
  return {c.cast(c.matmul(weights, value), from), c.cast(shown, from)};
}

Outputs attention(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Heads h, read_heads(c));
  KILN_ASSIGN_OR_RETURN(const Mask mask, read_mask(c, h));
  const auto size = static_cast<double>(extent(c, h.query, 3));
  const Parameters p{c.get_float("scale", 1.0 / std::sqrt(size)), c.get_float("softcap", 0.0),
                     c.get_int("qk_matmul_output_mode", 0)};
  std::vector<ValueId> outputs(4, kNoValue);
  if (c.wants(3)) {
    std::tie(outputs[0], outputs[3]) = expanded(c, h, mask, p);
  } else {
    ir::Attention op;
    op.scale = p.scale;
    op.causal = mask.causal;
    op.softcap = p.softcap;
    op.masked_row_zero = true;
    std::vector<ValueId> inputs{h.query, h.key, h.value};
    const ValueId combined = combine(c, mask);
    if (combined != kNoValue) inputs.push_back(combined);
    outputs[0] = c.emit(op, inputs);
    outputs.pop_back();
  }
  if (h.merged && !c.failed()) {
    const Shape s = c.shape(outputs[0]);
    outputs[0] = c.reshape(c.transpose(outputs[0], {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  outputs[1] = h.key;
  outputs[2] = h.value;
  return outputs;
}

constexpr Handler kHandlers[] = {
    {"", "Attention", attention},
};

}  // namespace

std::span<const Handler> attention_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
