// Pooling: windows become opaque operations with explicit pads; global pooling is a reduction.
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

Result<std::vector<int64_t>> spatial(NodeContext& c, const char* name, size_t count,
                                     int64_t fallback) {
  auto values = c.get_ints(name);
  if (!c.has_attribute(name)) values.assign(count, fallback);
  if (values.size() == count) return values;
  return c.fail(std::string(name) + " has " + number(static_cast<int64_t>(values.size())) +
                " entries, expected " + number(static_cast<int64_t>(count)));
}

// SAME_* pads so that the output has ceil(in / stride) cells.
void pad_to_same(Operation& pool, const Shape& input, bool upper) {
  const auto kernel = pool.get_ints("kernel_shape"), strides = pool.get_ints("strides"),
             dilations = pool.get_ints("dilations");
  const size_t count = kernel.size();
  std::vector<int64_t> pads(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = input[i + 2], cells = (extent + strides[i] - 1) / strides[i];
    const int64_t reach = (cells - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, reach - extent), smaller = total / 2;
    pads[i] = upper ? smaller : total - smaller;
    pads[i + count] = total - pads[i];
  }
  pool.set("pads", pads);
}

Result<Operation> read_window(NodeContext& c, const char* name) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const Shape& input = c.input_type(0).shape;
  if (input.size() < 3) {
    return c.fail("input is " + to_string(c.input_type(0)) + ", expected rank 3 or more");
  }
  const size_t count = input.size() - 2;
  Operation pool{name, {}};
  if (!c.has_attribute("kernel_shape")) return c.fail("attribute 'kernel_shape' is missing");
  for (const char* key : {"kernel_shape", "strides", "dilations"}) {
    KILN_ASSIGN_OR_RETURN(const auto values, spatial(c, key, count, 1));
    for (int64_t value : values) {
      if (value < 1 || value > kMost) return c.fail(std::string(key) + " is " + to_string(values));
    }
    pool.set(key, values);
  }
  KILN_ASSIGN_OR_RETURN(auto pads, spatial(c, "pads", 2 * count, 0));
  const std::string mode = c.get_string("auto_pad", "NOTSET");
  if (mode == "VALID") pads.assign(2 * count, 0);
  pool.set("pads", pads).set("ceil_mode", c.get_int("ceil_mode", 0));
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    pad_to_same(pool, input, mode == "SAME_UPPER");
  } else if (mode != "NOTSET" && mode != "VALID") {
    return c.fail("auto_pad is '" + mode + "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  return pool;
}

Outputs max_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(Operation pool, read_window(c, "max_pool"));
  pool.set("storage_order", c.get_int("storage_order", 0));
  pool.set("with_indices", int64_t{c.wants(1)});
  return c.opaque(std::move(pool), {c.input(0)});
}

Outputs average_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(Operation pool, read_window(c, "average_pool"));
  pool.set("count_include_pad", c.get_int("count_include_pad", 0));
  return c.opaque(std::move(pool), {c.input(0)});
}

Outputs lp_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(Operation pool, read_window(c, "lp_pool"));
  pool.set("p", c.get_int("p", 2));
  return c.opaque(std::move(pool), {c.input(0)});
}

Result<std::vector<int64_t>> spatial_axes(NodeContext& c) {
  const int64_t rank = c.input_type(0).rank();
  if (rank < 2)
    return c.fail("input is " + to_string(c.input_type(0)) + ", expected rank 2 or more");
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), int64_t{2});
  return axes;
}

Outputs global_average_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto axes, spatial_axes(c));
  return one(c.mean(c.input(0), axes));
}

Outputs global_max_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto axes, spatial_axes(c));
  return one(c.reduce(ReduceFn::kMax, c.input(0), axes));
}

Outputs global_lp_pool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto axes, spatial_axes(c));
  const ValueId x = c.input(0);
  const DType wide = compute_dtype(c.dtype(x));
  const auto p = static_cast<double>(c.get_int("p", 2));
  const ValueId magnitude = c.apply(ScalarFn::kAbs, {c.cast(x, wide)});
  const ValueId powers = c.apply(ScalarFn::kPow, {magnitude, c.scalar(p, wide)});
  const ValueId sum = c.reduce(ReduceFn::kSum, powers, axes);
  return one(c.cast(c.apply(ScalarFn::kPow, {sum, c.scalar(1 / p, wide)}), c.dtype(x)));
}

// The output has the extents that the pooling before it had as input, or those of input 2.
Outputs max_unpool(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Operation window, read_window(c, "max_unpool"));
  const Shape& input = c.input_type(0).shape;
  const auto kernel = window.get_ints("kernel_shape"), strides = window.get_ints("strides"),
             pads = window.get_ints("pads");
  Shape natural(input.begin(), input.begin() + 2);
  for (size_t i = 0; i < kernel.size(); ++i) {
    natural.push_back((input[i + 2] - 1) * strides[i] - pads[i] - pads[i + kernel.size()] +
                      kernel[i]);
  }
  Shape shape = natural;
  if (c.has(2)) {
    KILN_ASSIGN_OR_RETURN(shape, c.known_ints(2, "output_shape"));
  }
  Operation unpool{"max_unpool", {}};
  // Indices count positions in the natural shape; the result keeps rows and columns.
  unpool.set("shape", shape).set("indexed_shape", natural);
  return c.opaque(std::move(unpool), {c.input(0), c.input(1)});
}

constexpr Handler kHandlers[] = {
    {"", "AveragePool", average_pool},
    {"", "GlobalAveragePool", global_average_pool},
    {"", "GlobalLpPool", global_lp_pool},
    {"", "GlobalMaxPool", global_max_pool},
    {"", "LpPool", lp_pool},
    {"", "MaxPool", max_pool},
    {"", "MaxUnpool", max_unpool},
};

}  // namespace

std::span<const Handler> pooling_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
