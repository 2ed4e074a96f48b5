// cum_sum and reverse_sequence.
#include <algorithm>

#include "engine/host/attributes.h"
#include "engine/host/number_dispatch.h"
#include "engine/host/plain/index_values.h"
#include "engine/host/plain/kernels.h"
#include "engine/host/plain/lines.h"

namespace kiln::host {
namespace {

template <class T>
void cumulate(const Lines& lines, bool product, bool exclusive, bool reverse, const T* x, T* y) {
  for (int64_t line = 0; line < lines.count(); ++line) {
    const int64_t start = lines.start(line, lines.extent);
    T total = product ? 1 : 0;
    for (int64_t step = 0; step < lines.extent; ++step) {
      const int64_t at = start + (reverse ? lines.extent - 1 - step : step) * lines.inner;
      const T next = product ? wrapping_mul(total, x[at]) : wrapping_add(total, x[at]);
      y[at] = exclusive ? total : next;
      total = next;
    }
  }
}

Result<Types> infer_cumulative(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 1));
  KILN_RETURN_IF_ERROR(axis_attribute(o, in[0].rank()));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "exclusive"));
  KILN_RETURN_IF_ERROR(flag_attribute(o, "reverse"));
  return results(o, {in[0]});
}

KernelPtr cumulative_kernel(const Prepare& p, bool product) {
  const Lines lines = lines_along(p.inputs[0].type.shape, p.operation.get_int("axis", 0));
  const bool exclusive = p.operation.get_int("exclusive", 0) == 1;
  const bool reverse = p.operation.get_int("reverse", 0) == 1;
  return visit_number(p.outputs[0].dtype, [&]<class T>() {
    return make_kernel([=](Inputs in, Outputs out) {
      cumulate<T>(lines, product, exclusive, reverse, input<T>(in, 0), output<T>(out, 0));
    });
  });
}

}  // namespace

Result<Types> infer_cum_sum(const Operation& o, InputTypes in) { return infer_cumulative(o, in); }
Result<KernelPtr> prepare_cum_sum(const Prepare& p) { return cumulative_kernel(p, false); }
Result<Types> infer_cum_prod(const Operation& o, InputTypes in) { return infer_cumulative(o, in); }
Result<KernelPtr> prepare_cum_prod(const Prepare& p) { return cumulative_kernel(p, true); }

Result<Types> infer_reverse_sequence(const Operation& o, InputTypes in) {
  KILN_RETURN_IF_ERROR(expect_inputs(o, in, 2));
  KILN_RETURN_IF_ERROR(expect_rank(o, in, 0, 2));
  KILN_RETURN_IF_ERROR(expect_index(o, in, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t batch, int_attribute(o, "batch_axis", 0, 1));
  KILN_ASSIGN_OR_RETURN(const int64_t time, int_attribute(o, "time_axis", 0, 1));
  if (batch == time) return reject(o, "attributes 'batch_axis' and 'time_axis' are equal");
  KILN_RETURN_IF_ERROR(expect_shape(o, in, 1, {in[0].shape[batch]}));
  return results(o, {in[0]});
}

Result<KernelPtr> prepare_reverse_sequence(const Prepare& p) {
  const Shape& shape = p.inputs[0].type.shape;
  const bool batch_first = p.operation.get_int("batch_axis", 0) == 0;
  const int64_t batches = shape[batch_first ? 0 : 1], steps = shape[batch_first ? 1 : 0];
  const int64_t inner = element_count({shape.begin() + 2, shape.end()});
  return visit_size(bits_of(p.outputs[0].dtype) / 8, [&]<class T>() {
    return make_kernel([=, dtype = p.inputs[1].type.dtype](Inputs in, Outputs out) -> Result<> {
      for (int64_t b = 0; b < batches; ++b) {
        const int64_t length = index_value(in[1], dtype, b);
        if (length < 0 || length > steps) {
          return Error{ErrorCode::kInvalidArgument,
                       "reverse_sequence: length " + std::to_string(length) +
                           " is outside of [0, " + std::to_string(steps) + "]"};
        }
        for (int64_t t = 0; t < steps; ++t) {
          const int64_t from = t < length ? length - 1 - t : t;
          const auto at = [&](int64_t step) {
            return (batch_first ? b * steps + step : step * batches + b) * inner;
          };
          std::copy_n(input<T>(in, 0) + at(from), inner, output<T>(out, 0) + at(t));
        }
      }
      return Ok();
    });
  });
}

}  // namespace kiln::host
