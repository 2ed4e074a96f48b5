// transpose, reshape, bit_cast, broadcast, slice, pad, concat: copies between strided views.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/strided_copy.h"

namespace kiln::host {
namespace {

int64_t element_bytes(const TensorType& type) { return bits_of(type.dtype) / 8; }

// The whole output, dense, from a strided view of input 0.
KernelPtr copy_kernel(const Prepare& p, Strided source) {
  const TensorType& out = p.outputs[0];
  const Strided target{0, row_major_strides(out.shape)};
  return make_kernel(
      [shape = out.shape, source, target, bytes = element_bytes(out)](Inputs in, Outputs outs) {
        copy_strided(shape, in[0], source, outs[0], target, bytes);
      });
}

}  // namespace

Result<Types> infer_transpose(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const auto perm,
                        ints_attribute(o, "perm", in[0].rank(), 0, in[0].rank() - 1));
  TensorType out{in[0].dtype, {}};
  std::vector<bool> seen(perm.size());
  for (int64_t axis : perm) {
    if (seen[axis]) return reject(o, "attribute 'perm' names an axis twice");
    seen[axis] = true;
    out.shape.push_back(in[0].shape[axis]);
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_transpose(const Prepare& p) {
  const Shape dense = row_major_strides(p.inputs[0].type.shape);
  Strided source;
  for (int64_t axis : p.operation.get_ints("perm")) source.strides.push_back(dense[axis]);
  return copy_kernel(p, std::move(source));
}

Result<Types> infer_reshape(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const Shape shape, ints_attribute(o, "shape", -1, 0));
  const auto count = checked_element_count(shape);
  if (!count || *count != in[0].elements()) {
    return reject(o, "input is " + to_string(in[0]) + ", which cannot become " + to_string(shape));
  }
  return results(o, {{in[0].dtype, shape}});
}

Result<KernelPtr> prepare_reshape(const Prepare& p) {
  return make_kernel(
      [bytes = p.outputs[0].bytes()](Inputs in, Outputs out) {
        if (bytes > 0 && in[0] != out[0]) std::memcpy(out[0], in[0], bytes);
      },
      0, true);
}

Result<Types> infer_bit_cast(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  const auto to = parse_dtype(o.get_string("to", ""));
  if (!to || bits_of(*to) != bits_of(in[0].dtype)) {
    return reject(o, "attribute 'to' is '" + o.get_string("to", "") +
                         "', expected a dtype of the size of " + to_string(in[0]));
  }
  return results(o, {{*to, in[0].shape}});
}

Result<KernelPtr> prepare_bit_cast(const Prepare& p) { return prepare_reshape(p); }

Result<Types> infer_broadcast(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const Shape shape, ints_attribute(o, "shape", -1, 0));
  const size_t skipped = shape.size() - std::min(in[0].shape.size(), shape.size());
  bool fits = in[0].shape.size() <= shape.size();
  for (size_t i = 0; fits && i < in[0].shape.size(); ++i) {
    fits = in[0].shape[i] == 1 || in[0].shape[i] == shape[skipped + i];
  }
  if (!fits) {
    return reject(
        o, "input is " + to_string(in[0]) + ", which does not broadcast to " + to_string(shape));
  }
  return results(o, {{in[0].dtype, shape}});
}

Result<KernelPtr> prepare_broadcast(const Prepare& p) {
  const size_t rank = p.outputs[0].shape.size();
  return copy_kernel(p, {0, broadcast_strides(p.inputs[0].type.shape, rank)});
}

Result<Types> infer_slice(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  const int64_t rank = in[0].rank();
  KILN_ASSIGN_OR_RETURN(const auto starts, ints_attribute(o, "starts", rank));
  KILN_ASSIGN_OR_RETURN(const auto sizes, ints_attribute(o, "sizes", rank, 0));
  KILN_ASSIGN_OR_RETURN(const auto steps, ints_attribute(o, "steps", rank));
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t extent = in[0].shape[i];
    if (sizes[i] == 0) continue;
    // No overflow: |step| * (size - 1) is compared by division.
    const bool start_fits = starts[i] >= 0 && starts[i] < extent;
    const int64_t last = start_fits ? starts[i] : 0;
    const int64_t room = steps[i] >= 0 ? extent - 1 - last : last;
    const uint64_t stride = steps[i] >= 0 ? static_cast<uint64_t>(steps[i])
                                          : uint64_t{0} - static_cast<uint64_t>(steps[i]);
    const bool end_fits = sizes[i] == 1 || stride == 0 ||
                          (start_fits && static_cast<uint64_t>(sizes[i] - 1) <= room / stride);
    if (!start_fits || !end_fits) {
      return reject(o, "start " + std::to_string(starts[i]) + ", size " + std::to_string(sizes[i]) +
                           ", step " + std::to_string(steps[i]) + " leave axis " +
                           std::to_string(i) + " of " + to_string(in[0]));
    }
  }
  return results(o, {{in[0].dtype, sizes}});
}

Result<KernelPtr> prepare_slice(const Prepare& p) {
  const auto starts = p.operation.get_ints("starts"), steps = p.operation.get_ints("steps");
  const Shape dense = row_major_strides(p.inputs[0].type.shape);
  Strided source;
  const bool empty = p.outputs[0].elements() == 0;
  for (size_t i = 0; i < dense.size(); ++i) {
    const bool moves = !empty && p.outputs[0].shape[i] > 1;
    source.offset += empty ? 0 : starts[i] * dense[i];
    source.strides.push_back(moves ? steps[i] * dense[i] : 0);
  }
  return copy_kernel(p, std::move(source));
}

Result<Types> infer_pad(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 1, in[0].dtype));
  if (in[1].elements() != 1)
    return reject(o, "the value is " + to_string(in[1]) + ", expected one");
  constexpr int64_t kMost = int64_t{1} << 40;
  KILN_ASSIGN_OR_RETURN(const auto before, ints_attribute(o, "before", in[0].rank(), 0, kMost));
  KILN_ASSIGN_OR_RETURN(const auto after, ints_attribute(o, "after", in[0].rank(), 0, kMost));
  TensorType out = in[0];
  for (size_t i = 0; i < out.shape.size(); ++i) out.shape[i] += before[i] + after[i];
  return results(o, {out});
}

Result<KernelPtr> prepare_pad(const Prepare& p) {
  const auto before = p.operation.get_ints("before");
  const TensorType &in = p.inputs[0].type, &out = p.outputs[0];
  const Strided source{0, row_major_strides(in.shape)};
  Strided target{0, row_major_strides(out.shape)};
  if (in.elements() > 0) {
    for (size_t i = 0; i < before.size(); ++i) target.offset += before[i] * target.strides[i];
  }
  return make_kernel([in, source, target, count = out.elements()](Inputs ins, Outputs outs) {
    visit_size(element_bytes(in), [&]<class T>() {
      if (count > 0) std::fill_n(output<T>(outs, 0), count, *input<T>(ins, 1));
    });
    copy_strided(in.shape, ins[0], source, outs[0], target, element_bytes(in));
  });
}

Result<Types> infer_concat(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1, SIZE_MAX));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, axis_attribute(o, in[0].rank()));
  TensorType out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    Shape expected = in[0].shape;
    KILN_RETURN_IF_ERROR(expect_rank(o, in, i, in[0].rank(), in[0].rank()));
    KILN_RETURN_IF_ERROR(expect_dtype(o, in, i, in[0].dtype));
    expected[axis] = in[i].shape[axis];
    KILN_RETURN_IF_ERROR(expect_shape(o, in, i, expected));
    if (__builtin_add_overflow(out.shape[axis], expected[axis], &out.shape[axis])) {
      return reject(o, "the result is too large");
    }
  }
  return results(o, {out});
}

Result<KernelPtr> prepare_concat(const Prepare& p) {
  const int64_t axis = p.operation.get_int("axis", 0);
  const TensorType& out = p.outputs[0];
  const Shape strides = row_major_strides(out.shape);
  std::vector<TensorType> parts;
  for (const HostInput& in : p.inputs) parts.push_back(in.type);
  return make_kernel([parts, strides, axis](Inputs in, Outputs outs) {
    Strided target{0, strides};
    for (size_t i = 0; i < parts.size(); ++i) {
      const Strided source{0, row_major_strides(parts[i].shape)};
      copy_strided(parts[i].shape, in[i], source, outs[0], target, element_bytes(parts[i]));
      target.offset += parts[i].shape[axis] * strides[axis];
    }
  });
}

}  // namespace kiln::host
