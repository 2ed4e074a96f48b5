#include "builder/ir/type_rules/type_rules.h"

namespace kiln::ir {

Inferred infer(const MatMul& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 2, 2));
  const TensorType &a = in[0], &b = in[1];
  if (a.rank() < 2 || b.rank() < 2 || a.dtype != b.dtype) {
    return reject("matmul: inputs are " + to_string(a) + " and " + to_string(b) +
                  ", expected rank 2 or more and one type");
  }
  const auto dim = [](const TensorType& t, bool last) {
    return t.shape[t.shape.size() - (last ? 1 : 2)];
  };
  const int64_t m = dim(a, op.transpose_a), k = dim(a, !op.transpose_a);
  const int64_t other_k = dim(b, op.transpose_b), n = dim(b, !op.transpose_b);
  if (k != other_k) {
    return reject("matmul: inner extents are " + std::to_string(k) + " (" + to_string(a) +
                  ") and " + std::to_string(other_k) + " (" + to_string(b) + "), expected equal");
  }
  const bool codes = is_float(a.dtype) && bits_of(a.dtype) == 8;
  TensorType out{codes ? DType::kF32 : a.dtype, {}};
  KILN_ASSIGN_OR_RETURN(out.shape, broadcast({a.shape.begin(), a.shape.end() - 2},
                                             {b.shape.begin(), b.shape.end() - 2}));
  out.shape.insert(out.shape.end(), {m, n});
  return one(std::move(out));
}

Inferred infer(const Attention&, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 3, 4));
  const auto types = to_string(in[0]) + ", " + to_string(in[1]) + ", " + to_string(in[2]);
  for (const TensorType& type : in.first(3)) {
    if (type.rank() != 4 || type.dtype != in[0].dtype || !is_float(type.dtype)) {
      return reject("attention: q, k, v are " + types + ", expected rank 4 and one float type");
    }
  }
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const bool heads_fit = k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0;
  if (q[0] != k[0] || q[0] != v[0] || !heads_fit || q[3] != k[3] || k[2] != v[2]) {
    return reject("attention: q, k, v are " + types + ", expected [B,H,S,D], [B,G,T,D], [B,G,T,E]");
  }
  if (in.size() == 4) {
    const Shape scores{q[0], q[1], q[2], k[2]};
    KILN_ASSIGN_OR_RETURN(const Shape shape, broadcast(in[3].shape, scores));
    if (shape != scores || (in[3].dtype != DType::kBool && !is_float(in[3].dtype))) {
      return reject("attention: mask is " + to_string(in[3]) +
                    ", expected bool or float that broadcasts to " + to_string(scores));
    }
  }
  return one({in[0].dtype, {q[0], q[1], q[2], v[3]}});
}

}  // namespace kiln::ir
