// matmul: numpy.matmul on matrices, leading axes broadcast; either operand may be stored
// transposed.
#include <algorithm>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/parallel.h"
#include "engine/host/plain/gemm.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/strided_copy.h"

namespace kiln::host {
namespace {

struct Plan {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  Shape batch;                                // broadcast leading axes
  std::vector<int64_t> a_strides, b_strides;  // of the leading axes, in matrices
};

Shape leading(const TensorType& type) { return {type.shape.begin(), type.shape.end() - 2}; }

Plan make_plan(const Operation& o, const TensorType& a, const TensorType& b,
               const TensorType& out) {
  Plan plan{};
  plan.transpose_a = o.get_int("transpose_a", 0) == 1;
  plan.transpose_b = o.get_int("transpose_b", 0) == 1;
  plan.batch = leading(out);
  plan.a_strides = broadcast_strides(leading(a), plan.batch.size());
  plan.b_strides = broadcast_strides(leading(b), plan.batch.size());
  plan.m = out.shape[out.shape.size() - 2];
  plan.n = out.shape.back();
  plan.k = a.shape[a.shape.size() - (plan.transpose_a ? 2 : 1)];
  return plan;
}

int64_t matrix_index(const Plan& plan, const std::vector<int64_t>& strides, int64_t batch) {
  int64_t index = 0;
  for (size_t i = plan.batch.size(); i-- > 0; batch /= plan.batch[i]) {
    index += batch % plan.batch[i] * strides[i];
  }
  return index;
}

template <class T>
void multiply(const Plan& plan, const T* a, const T* b, T* c) {
  constexpr int64_t kTileRows = 384, kTileColumns = 512;
  const int64_t row_tiles = (plan.m + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (plan.n + kTileColumns - 1) / kTileColumns;
  const int64_t tiles = row_tiles * column_tiles;
  const int64_t cost = std::min(kTileRows, plan.m) * std::min(kTileColumns, plan.n) * plan.k;
  std::fill_n(c, element_count(plan.batch) * plan.m * plan.n, T{0});
  parallel_for(element_count(plan.batch) * tiles, cost, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t batch = item / tiles;
      const int64_t i = item % tiles / column_tiles * kTileRows;
      const int64_t j = item % tiles % column_tiles * kTileColumns;
      Matrix<const T> left{a + matrix_index(plan, plan.a_strides, batch) * plan.m * plan.k,
                           plan.transpose_a ? 1 : plan.k, plan.transpose_a ? plan.m : 1};
      Matrix<const T> right{b + matrix_index(plan, plan.b_strides, batch) * plan.k * plan.n,
                            plan.transpose_b ? 1 : plan.n, plan.transpose_b ? plan.k : 1};
      left.data += i * left.row;
      right.data += j * right.column;
      gemm<T>(std::min(kTileRows, plan.m - i), std::min(kTileColumns, plan.n - j), plan.k, left,
              right, {c + (batch * plan.m + i) * plan.n + j, plan.n, 1});
    }
  });
}

}  // namespace

Result<Types> infer_matmul(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_ASSIGN_OR_RETURN(const bool transpose_a, flag_attribute(o, "transpose_a"));
  KILN_ASSIGN_OR_RETURN(const bool transpose_b, flag_attribute(o, "transpose_b"));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 1, in[0].dtype));
  for (size_t i = 0; i < 2; ++i) KILN_RETURN_IF_ERROR(expect_rank(o, in, i, 2));
  const Shape &a = in[0].shape, &b = in[1].shape;
  const size_t a_rank = a.size(), b_rank = b.size(), rank = std::max(a_rank, b_rank);
  const int64_t m = a[a_rank - (transpose_a ? 1 : 2)], ka = a[a_rank - (transpose_a ? 2 : 1)];
  const int64_t n = b[b_rank - (transpose_b ? 2 : 1)], kb = b[b_rank - (transpose_b ? 1 : 2)];
  if (ka != kb) {
    return reject(o, "inputs are " + to_string(in[0]) + " and " + to_string(in[1]) +
                         ", the inner extents " + std::to_string(ka) + " and " +
                         std::to_string(kb) + " differ");
  }
  const bool codes = is_float(in[0].dtype) && bits_of(in[0].dtype) == 8;
  TensorType out{codes ? DType::kF32 : in[0].dtype, Shape(rank, 1)};
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t x = i + a_rank >= rank ? a[i + a_rank - rank] : 1;
    const int64_t y = i + b_rank >= rank ? b[i + b_rank - rank] : 1;
    if (x != y && x != 1 && y != 1) {
      return reject(o, "leading axes of " + to_string(in[0]) + " and " + to_string(in[1]) +
                           " do not broadcast");
    }
    out.shape[i] = x == 1 ? y : x;
  }
  out.shape[rank - 2] = m;
  out.shape[rank - 1] = n;
  return results(o, {out});
}

Result<KernelPtr> prepare_matmul(const Prepare& p) {
  if (p.outputs[0].dtype == DType::kBool) return unsupported(p.operation, "inputs are bool");
  Plan plan = make_plan(p.operation, p.inputs[0].type, p.inputs[1].type, p.outputs[0]);
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([plan = std::move(plan)](Inputs in, Outputs out) {
      multiply<T>(plan, input<T>(in, 0), input<T>(in, 1), output<T>(out, 0));
    });
  });
}

}  // namespace kiln::host
