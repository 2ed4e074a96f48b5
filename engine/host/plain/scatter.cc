// scatter_elements and scatter_nd: the data with some elements replaced by, or combined with,
// updates. Updates apply in order, so the last of equal indices wins.
#include <algorithm>
#include <cstring>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/index_values.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/scalar_apply.h"

namespace kiln::host {
namespace {

enum class Combine : uint8_t { kNone, kAdd, kMul, kMax, kMin };

Result<Combine> combine_attribute(const Operation& o) {
  KILN_ASSIGN_OR_RETURN(const size_t choice,
                        choice_attribute(o, "reduction", {"none", "add", "mul", "max", "min"}));
  return static_cast<Combine>(choice);
}

template <class T>
T combined(Combine combine, T old, T update) {
  switch (combine) {
    case Combine::kAdd:
      return wrapping_add(old, update);
    case Combine::kMul:
      return wrapping_mul(old, update);
    case Combine::kMax:
      return extreme<ScalarFn::kMax>(old, update);
    case Combine::kMin:
      return extreme<ScalarFn::kMin>(old, update);
    default:
      return update;
  }
}

void copy_data(Inputs in, Outputs out, int64_t bytes) {
  if (bytes > 0) std::memcpy(out[0], in[0], bytes);
}

}  // namespace

Result<Types> infer_scatter_elements(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 3));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 2, in[0].dtype));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, in[0].rank(), in[0].rank()));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, in[1].shape));
  KILN_RETURN_IF_ERROR(combine_attribute(o));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  for (int64_t i = 0; i < in[0].rank(); ++i) {
    if (i != axis && in[1].shape[i] > in[0].shape[i]) {
      return reject(o, "indices are " + to_string(in[1]) + ", larger than the data " +
                           to_string(in[0]) + " on axis " + std::to_string(i));
    }
  }
  return results(o, {in[0]});
}

Result<KernelPtr> prepare_scatter_elements(const Prepare& p) {
  const TensorType &data = p.inputs[0].type, &indices = p.inputs[1].type;
  const auto axis = static_cast<size_t>(p.operation.get_int("axis", 0));
  KILN_ASSIGN_OR_RETURN(const Combine combine, combine_attribute(p.operation));
  return visit_number(data.dtype, [&]<class T>() {
    return make_kernel([=, shape = indices.shape, strides = row_major_strides(data.shape),
                        extent = data.shape[axis], dtype = indices.dtype, bytes = data.bytes(),
                        count = indices.elements()](Inputs in, Outputs out) -> Result<> {
      copy_data(in, out, bytes);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t found = index_value(in[1], dtype, i);
        const int64_t index = normalised_index(found, extent);
        if (index < 0) return index_error("scatter_elements", found, extent);
        int64_t at = index * strides[axis], rest = i;
        for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) {
          if (a != axis) at += rest % shape[a] * strides[a];
        }
        T& to = output<T>(out, 0)[at];
        to = combined(combine, to, input<T>(in, 2)[i]);
      }
      return Ok();
    });
  });
}

Result<Types> infer_scatter_nd(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 3));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 2, in[0].dtype));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, 1));
  KILN_RETURN_IF_ERROR(combine_attribute(o));
  const int64_t depth = in[1].shape.back();
  if (depth < 0 || depth > in[0].rank()) {
    return reject(o, "indices are " + to_string(in[1]) + ", their last extent must be at most " +
                         std::to_string(in[0].rank()) + " for data " + to_string(in[0]));
  }
  Shape updates(in[1].shape.begin(), in[1].shape.end() - 1);
  updates.insert(updates.end(), in[0].shape.begin() + depth, in[0].shape.end());
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 2, updates));
  return results(o, {in[0]});
}

Result<KernelPtr> prepare_scatter_nd(const Prepare& p) {
  const TensorType &data = p.inputs[0].type, &indices = p.inputs[1].type;
  const int64_t depth = indices.shape.back();
  KILN_ASSIGN_OR_RETURN(const Combine combine, combine_attribute(p.operation));
  const Shape extents(data.shape.begin(), data.shape.begin() + depth);
  const int64_t inner = element_count({data.shape.begin() + depth, data.shape.end()});
  const int64_t tuples = element_count({indices.shape.begin(), indices.shape.end() - 1});
  return visit_number(data.dtype, [&]<class T>() {
    return make_kernel(
        [=, dtype = indices.dtype, bytes = data.bytes()](Inputs in, Outputs out) -> Result<> {
          copy_data(in, out, bytes);
          for (int64_t i = 0; inner > 0 && i < tuples; ++i) {
            int64_t at = 0;
            for (int64_t d = 0; d < depth; ++d) {
              const int64_t found = index_value(in[1], dtype, i * depth + d);
              const int64_t index = normalised_index(found, extents[d]);
              if (index < 0) return index_error("scatter_nd", found, extents[d]);
              at = at * extents[d] + index;
            }
            T* to = output<T>(out, 0) + at * inner;
            const T* from = input<T>(in, 2) + i * inner;
            for (int64_t j = 0; j < inner; ++j) to[j] = combined(combine, to[j], from[j]);
          }
          return Ok();
        });
  });
}

}  // namespace kiln::host
