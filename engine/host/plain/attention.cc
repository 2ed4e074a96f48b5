// attention: softmax(scale * q k^T [+ mask]) v, by its definition (ir::Attention): scores of a few
// queries at a time, then the softmax over them, then their mean of v.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/strided_copy.h"

namespace kiln::host {
namespace {

struct Plan {
  int64_t batch, heads, groups, queries, keys, depth, value_depth;
  double scale, softcap;
  bool causal, masked_row_zero;
  bool mask = false, bool_mask = false;
  std::vector<int64_t> mask_strides;  // of [B, H, S, T]
};

template <class T>
class Scores {
 public:
  Scores(const Plan& plan, const void* mask) : plan_(plan), mask_(mask) {}

  // Softmax of one row of raw products, in place.
  void softmax(T* row, int64_t batch, int64_t head, int64_t query) const {
    const T minus_infinity = -std::numeric_limits<T>::infinity();
    const int64_t at = batch * stride(0) + head * stride(1) + query * stride(2);
    T top = minus_infinity;
    bool nan = false;
    for (int64_t t = 0; t < plan_.keys; ++t) {
      row[t] = masked(score(row[t]), query, t, at + t * stride(3));
      nan |= std::isnan(row[t]);
      top = std::max(top, row[t]);
    }
    if (top == minus_infinity && !nan) {
      const T weight = plan_.masked_row_zero ? T{0} : T{1} / static_cast<T>(plan_.keys);
      std::fill_n(row, plan_.keys, weight);
      return;
    }
    T sum = 0;
    for (int64_t t = 0; t < plan_.keys; ++t) sum += row[t] = std::exp(row[t] - top);
    for (int64_t t = 0; t < plan_.keys; ++t) row[t] /= sum;
  }

 private:
  int64_t stride(size_t axis) const { return plan_.mask ? plan_.mask_strides[axis] : 0; }

  T score(T product) const {
    const T scaled = product * static_cast<T>(plan_.scale);
    if (plan_.softcap == 0) return scaled;
    const T cap = static_cast<T>(plan_.softcap);
    return cap * std::tanh(scaled / cap);
  }

  T masked(T value, int64_t query, int64_t key, int64_t at) const {
    const T minus_infinity = -std::numeric_limits<T>::infinity();
    if (plan_.causal && key > query) return minus_infinity;
    if (!plan_.mask) return value;
    if (!plan_.bool_mask) return value + static_cast<const T*>(mask_)[at];
    return static_cast<const uint8_t*>(mask_)[at] ? value : minus_infinity;
  }

  const Plan& plan_;
  const void* mask_;
};

template <class T>
void attend(const Plan& p, const T* q, const T* k, const T* v, const void* mask, T* out) {
  constexpr int64_t kTile = 64;  // queries of one piece of work
  const int64_t tiles = (p.queries + kTile - 1) / kTile;
  const int64_t cost = kTile * p.keys * (p.depth + p.value_depth + 16);
  const Scores<T> scores(p, mask);
  std::fill_n(out, p.batch * p.heads * p.queries * p.value_depth, T{0});
  parallel_for(p.batch * p.heads * tiles, cost, [&](int64_t begin, int64_t end) {
    std::vector<T> weights(kTile * p.keys);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / tiles, batch = image / p.heads, head = image % p.heads;
      const int64_t shared = batch * p.groups + head / (p.heads / p.groups);
      const int64_t first = item % tiles * kTile, rows = std::min(kTile, p.queries - first);
      const int64_t row = image * p.queries + first;
      std::fill(weights.begin(), weights.end(), T{0});
      gemm<T>(rows, p.keys, p.depth, {q + row * p.depth, p.depth, 1},
              {k + shared * p.keys * p.depth, 1, p.depth}, {weights.data(), p.keys, 1});
      for (int64_t i = 0; i < rows; ++i) {
        scores.softmax(weights.data() + i * p.keys, batch, head, first + i);
      }
      gemm<T>(rows, p.value_depth, p.keys, {weights.data(), p.keys, 1},
              {v + shared * p.keys * p.value_depth, p.value_depth, 1},
              {out + row * p.value_depth, p.value_depth, 1});
    }
  });
}

Result<> check_mask(const Operation& o, InputTypes in) {
  const Shape scores{in[0].shape[0], in[0].shape[1], in[0].shape[2], in[1].shape[2]};
  const Shape& mask = in[3].shape;
  bool fits = mask.size() <= 4 && (in[3].dtype == DType::kBool || is_float(in[3].dtype));
  for (size_t i = 0; fits && i < mask.size(); ++i) {
    fits = mask[i] == 1 || mask[i] == scores[4 - mask.size() + i];
  }
  if (fits) return Ok();
  return reject(o, "mask is " + to_string(in[3]) + ", expected bool or float that broadcasts to " +
                       to_string(scores));
}

}  // namespace

Result<Types> infer_attention(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 3, 4));
  KILN_RETURN_IF_ERROR(double_attribute(o, "scale"));
  KILN_RETURN_IF_ERROR(double_attribute(o, "softcap"));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "causal"));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "masked_row_zero"));
  KILN_RETURN_IF_ERROR(expect_float(o, in, 0));
  for (size_t i = 0; i < 3; ++i) {
    KILN_RETURN_IF_ERROR(expect_rank(o, in, i, 4, 4));
    KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, in[0].dtype));
  }
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  if (k[1] < 1 || q[1] % k[1] != 0) {
    return reject(o, "q has " + std::to_string(q[1]) + " heads, expected a multiple of k's " +
                         std::to_string(k[1]));
  }
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 1, {q[0], k[1], k[2], q[3]}));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, {q[0], k[1], k[2], v[3]}));
  if (in.size() == 4) KILN_RETURN_IF_ERROR(check_mask(o, in));
  return results(o, {{in[0].dtype, {q[0], q[1], q[2], v[3]}}});
}

Result<KernelPtr> prepare_attention(const Prepare& p) {
  const Operation& o = p.operation;
  const Shape &q = p.inputs[0].type.shape, &k = p.inputs[1].type.shape;
  Plan plan{q[0],
            q[1],
            k[1],
            q[2],
            k[2],
            q[3],
            p.outputs[0].shape[3],
            o.get_double("scale", 1),
            o.get_double("softcap", 0),
            o.get_int("causal", 0) == 1,
            o.get_int("masked_row_zero", 0) == 1};
  if (p.inputs.size() == 4) {
    plan.mask = true;
    plan.bool_mask = p.inputs[3].type.dtype == DType::kBool;
    if (!plan.bool_mask && p.inputs[3].type.dtype != p.outputs[0].dtype) {
      return unsupported(o, "mask is " + to_string(p.inputs[3].type) + ", q is " +
                                to_string(p.inputs[0].type) + "; cast the mask");
    }
    plan.mask_strides = broadcast_strides(p.inputs[3].type.shape, 4);
  }
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  return visit_float(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan](Inputs in, Outputs out) {
      attend<T>(plan, input<T>(in, 0), input<T>(in, 1), input<T>(in, 2),
                plan.mask ? in[3] : nullptr, output<T>(out, 0));
    });
  });
}

}  // namespace kiln::host
