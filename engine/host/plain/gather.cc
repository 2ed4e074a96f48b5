// gather (numpy.take), gather_elements, gather_nd.
#include <cstring>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/index_values.h"
#include "engine/host/plain/kernels.h"

namespace kiln::host {
namespace {

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

}  // namespace

Result<Types> infer_gather(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  TensorType out = in[0];
  out.shape.erase(out.shape.begin() + axis);
  out.shape.insert(out.shape.begin() + axis, in[1].shape.begin(), in[1].shape.end());
  return results(o, {out});
}

Result<KernelPtr> prepare_gather(const Prepare& p) {
  const TensorType &data = p.inputs[0].type, &indices = p.inputs[1].type;
  const auto axis = static_cast<size_t>(p.operation.get_int("axis", 0));
  const int64_t extent = data.shape[axis], count = indices.elements();
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  const int64_t outer = product(data.shape, 0, axis);
  const int64_t bytes = product(data.shape, axis + 1, data.shape.size()) * bits_of(data.dtype) / 8;
  return make_kernel([=, dtype = indices.dtype](Inputs in, Outputs out) -> Result<> {
    const auto* from = input<std::byte>(in, 0);
    auto* to = output<std::byte>(out, 0);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t found = index_value(in[1], dtype, i);
      const int64_t index = normalised_index(found, extent);
      if (index < 0) return index_error("gather", found, extent);
      for (int64_t o = 0; o < outer; ++o) {
        std::memcpy(to + (o * count + i) * bytes, from + (o * extent + index) * bytes, bytes);
      }
    }
    return Ok();
  });
}

Result<Types> infer_gather_elements(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, in[0].rank(), in[0].rank()));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  for (int64_t i = 0; i < in[0].rank(); ++i) {
    if (i != axis && in[1].shape[i] > in[0].shape[i]) {
      return reject(o, "indices are " + to_string(in[1]) + ", larger than the data " +
                           to_string(in[0]) + " on axis " + std::to_string(i));
    }
  }
  return results(o, {{in[0].dtype, in[1].shape}});
}

Result<KernelPtr> prepare_gather_elements(const Prepare& p) {
  const TensorType &data = p.inputs[0].type, &indices = p.inputs[1].type;
  const auto axis = static_cast<size_t>(p.operation.get_int("axis", 0));
  return visit_size(bits_of(data.dtype) / 8, [&]<class T>() {
    return make_kernel([=, shape = indices.shape, strides = row_major_strides(data.shape),
                        extent = data.shape[axis], dtype = indices.dtype,
                        count = indices.elements()](Inputs in, Outputs out) -> Result<> {
      const T* from = input<T>(in, 0);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t found = index_value(in[1], dtype, i);
        const int64_t index = normalised_index(found, extent);
        if (index < 0) return index_error("gather_elements", found, extent);
        int64_t at = index * strides[axis], rest = i;
        for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) {
          if (a != axis) at += rest % shape[a] * strides[a];
        }
        output<T>(out, 0)[i] = from[at];
      }
      return Ok();
    });
  });
}

Result<Types> infer_gather_nd(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 1, 1));
  const int64_t most = std::min(in[0].rank(), in[1].rank()) - 1;
  KILN_ASSIGN_OR_RETURN(const int64_t batch, int_attribute(o, "batch_dims", 0, most));
  const int64_t depth = in[1].shape.back();
  if (depth < 1 || depth > in[0].rank() - batch) {
    return reject(o, "indices are " + to_string(in[1]) + ", their last extent must be 1 to " +
                         std::to_string(in[0].rank() - batch) + " for data " + to_string(in[0]));
  }
  for (int64_t i = 0; i < batch; ++i) {
    if (in[0].shape[i] != in[1].shape[i]) {
      return reject(o, "data " + to_string(in[0]) + " and indices " + to_string(in[1]) +
                           " differ in batch axis " + std::to_string(i));
    }
  }
  TensorType out{in[0].dtype, {in[1].shape.begin(), in[1].shape.end() - 1}};
  out.shape.insert(out.shape.end(), in[0].shape.begin() + batch + depth, in[0].shape.end());
  return results(o, {out});
}

Result<KernelPtr> prepare_gather_nd(const Prepare& p) {
  const TensorType &data = p.inputs[0].type, &indices = p.inputs[1].type;
  const auto batch = static_cast<size_t>(p.operation.get_int("batch_dims", 0));
  const auto depth = static_cast<size_t>(indices.shape.back());
  if (p.outputs[0].elements() == 0) return make_kernel([](Inputs, Outputs) {});
  const int64_t batches = product(data.shape, 0, batch);
  const int64_t tuples = product(indices.shape, batch, indices.shape.size() - 1);
  const int64_t bytes =
      product(data.shape, batch + depth, data.shape.size()) * bits_of(data.dtype) / 8;
  const Shape extents(data.shape.begin() + batch, data.shape.begin() + batch + depth);
  return make_kernel([=, dtype = indices.dtype](Inputs in, Outputs out) -> Result<> {
    const int64_t area = element_count(extents);
    for (int64_t i = 0; i < batches * tuples; ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < depth; ++d) {
        const int64_t found = index_value(in[1], dtype, i * static_cast<int64_t>(depth) + d);
        const int64_t index = normalised_index(found, extents[d]);
        if (index < 0) return index_error("gather_nd", found, extents[d]);
        at = at * extents[d] + index;
      }
      std::memcpy(output<std::byte>(out, 0) + i * bytes,
                  input<std::byte>(in, 0) + (i / tuples * area + at) * bytes, bytes);
    }
    return Ok();
  });
}

}  // namespace kiln::host
