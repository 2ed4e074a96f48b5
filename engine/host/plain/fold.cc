// max_unpool and col2im: the inverses of pooling and of unrolling.
#include <algorithm>

#include "engine/host/number_dispatch.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/window.h"

namespace kiln::host {

// Inputs: values, i64 positions in a tensor of attribute indexed_shape. The result has attribute
// shape: that tensor, zero elsewhere, grown or cut at the end of its axes.
Result<Types> infer_max_unpool(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 1, in[0].shape));
  KILN_RETURN_IF_ERROR(expect_dtype(o, in, 1, DType::kI64));
  constexpr int64_t kMost = int64_t{1} << 40;
  KILN_ASSIGN_OR_RETURN(const Shape shape, ints_attribute(o, "shape", in[0].rank(), 0, kMost));
  KILN_ASSIGN_OR_RETURN(const Shape indexed,
                        ints_attribute(o, "indexed_shape", in[0].rank(), 0, kMost));
  return results(o, {{in[0].dtype, shape}});
}

Result<KernelPtr> prepare_max_unpool(const Prepare& p) {
  const Shape indexed = p.operation.get_ints("indexed_shape"), shape = p.outputs[0].shape;
  const auto limit = checked_element_count(indexed);
  if (!limit) return reject(p.operation, "attribute 'indexed_shape' is too large");
  return visit_size(bits_of(p.outputs[0].dtype) / 8, [&]<class T>() {
    return make_kernel([=, count = p.inputs[0].type.elements(), size = p.outputs[0].elements()](
                           Inputs in, Outputs out) -> Result<> {
      if (size > 0) std::fill_n(output<T>(out, 0), size, T{0});
      const Shape strides = row_major_strides(shape);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t found = input<int64_t>(in, 1)[i];
        if (found < 0 || found >= *limit) {
          return Error{ErrorCode::kInvalidArgument,
                       "max_unpool: position " + std::to_string(found) + " is outside of [0, " +
                           std::to_string(*limit) + ")"};
        }
        int64_t at = 0, rest = found;
        bool inside = true;
        for (size_t a = shape.size(); a-- > 0; rest /= indexed[a]) {
          inside &= rest % indexed[a] < shape[a];
          at += rest % indexed[a] * strides[a];
        }
        if (inside) output<T>(out, 0)[at] = input<T>(in, 0)[i];
      }
      return Ok();
    });
  });
}

namespace {

Result<Window> block_window(const Operation& o) {
  KILN_ASSIGN_OR_RETURN(auto shape, ints_attribute(o, "block_shape", -1, 1, kMaxAmount));
  if (shape.empty() || shape.size() > 6) {
    return reject(o, "attribute 'block_shape' must have 1 to 6 entries");
  }
  return read_window(o, std::move(shape));
}

// How many blocks fit along each axis.
Shape block_counts(const Window& w, const Shape& image) {
  Shape counts;
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t room = image[i] + w.begin[i] + w.end[i] - w.span(i);
    counts.push_back(room < 0 ? 0 : room / w.strides[i] + 1);
  }
  return counts;
}

}  // namespace

// x [N, C * block, L] -> [N, C, image...]: overlapping cells are added up.
Result<Types> infer_col2im(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 3, 3));
  KILN_ASSIGN_OR_RETURN(const Window w, block_window(o));
  const auto rank = static_cast<int64_t>(w.rank());
  KILN_ASSIGN_OR_RETURN(const Shape image, ints_attribute(o, "image_shape", rank, 1, kMaxAmount));
  const auto taps = checked_element_count(w.kernel),
             blocks = checked_element_count(block_counts(w, image));
  if (!taps || in[0].shape[1] % *taps != 0 || blocks != in[0].shape[2]) {
    return reject(o, "input is " + to_string(in[0]) + ", expected [N, C * " + to_string(w.kernel) +
                         ", blocks " + to_string(block_counts(w, image)) + "]");
  }
  TensorType out{in[0].dtype, {in[0].shape[0], in[0].shape[1] / *taps}};
  out.shape.insert(out.shape.end(), image.begin(), image.end());
  return results(o, {out});
}

Result<KernelPtr> prepare_col2im(const Prepare& p) {
  const Window w = *block_window(p.operation);
  const Shape image = p.operation.get_ints("image_shape"), counts = block_counts(w, image);
  const int64_t planes = p.outputs[0].shape[0] * p.outputs[0].shape[1];
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([=, size = p.outputs[0].elements()](Inputs in, Outputs out) {
      if (size == 0) return;
      std::fill_n(output<T>(out, 0), size, T{0});
      const int64_t taps = w.taps(), blocks = element_count(counts), area = element_count(image);
      const T* from = input<T>(in, 0);
      for (int64_t plane = 0; plane < planes; ++plane) {
        Odometer tap(w.kernel);
        for (int64_t t = 0; t < taps; ++t, tap.next()) {
          Odometer block(counts);
          for (int64_t l = 0; l < blocks; ++l, block.next(), ++from) {
            int64_t at = 0;
            bool inside = true;
            for (size_t i = 0; i < w.rank(); ++i) {
              const int64_t cell =
                  block.at()[i] * w.strides[i] + tap.at()[i] * w.dilations[i] - w.begin[i];
              inside &= cell >= 0 && cell < image[i];
              at = at * image[i] + cell;
            }
            if (!inside) continue;
            T& sum = output<T>(out, 0)[plane * area + at];
            sum = wrapping_add(sum, *from);
          }
        }
      }
    });
  });
}

}  // namespace kiln::host
