// Operators that give the same elements another shape.
#include <functional>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

std::string number(int64_t value) { return std::to_string(value); }

// 0 copies the input's extent (unless allowzero), one -1 takes what is left.
Result<Shape> resolve_shape(NodeContext& c, const Shape& from, Shape target, bool allow_zero) {
  int64_t known = 1;
  auto inferred = target.end();
  for (auto extent = target.begin(); extent != target.end(); ++extent) {
    const auto i = static_cast<size_t>(extent - target.begin());
    if (*extent == 0 && !allow_zero) {
      if (i >= from.size())
        return c.fail("shape copies axis " + number(extent - target.begin()) +
                      " of an input of rank " + number(int64_t(from.size())));
      *extent = from[i];
    }
    if (*extent < -1) return c.fail("shape has the extent " + number(*extent));
    if (*extent == -1) {
      if (inferred != target.end()) return c.fail("shape has more than one -1");
      inferred = extent;
    } else if (__builtin_mul_overflow(known, *extent, &known)) {
      return c.fail("shape " + to_string(target) + " is too large");
    }
  }
  const int64_t count = element_count(from);
  if (inferred != target.end()) *inferred = known > 0 ? count / known : 0;
  if (checked_element_count(target) != count) {
    return c.fail("input " + to_string(from) + " has " + number(count) +
                  " elements, which do not fill the shape " + to_string(target));
  }
  return target;
}

Outputs reshape(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Shape wanted, c.known_ints(1, "shape"));
  const bool allow_zero = c.get_int("allowzero", 0) != 0;
  KILN_ASSIGN_OR_RETURN(const Shape shape,
                        resolve_shape(c, c.input_type(0).shape, wanted, allow_zero));
  return one(c.reshape(c.input(0), shape));
}

Outputs flatten(NodeContext& c) {
  const Shape shape = c.input_type(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = c.get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    return c.fail("axis " + number(axis) + " is outside of rank " + number(rank));
  }
  if (axis < 0) axis += rank;
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
  };
  return one(c.reshape(c.input(0), {product(shape.begin(), shape.begin() + axis),
                                    product(shape.begin() + axis, shape.end())}));
}

Outputs squeeze(NodeContext& c) {
  const ValueId x = c.input(0);
  KILN_ASSIGN_OR_RETURN(auto axes, c.axes(1, 13, c.rank(x)));
  const bool given = c.opset() < 13 ? c.has_attribute("axes") : c.has(1);
  if (!given) {
    for (int64_t axis = 0; axis < c.rank(x); ++axis) {
      if (c.shape(x)[at(axis)] == 1) axes.push_back(axis);
    }
  }
  return one(c.squeeze(x, std::move(axes)));
}

Outputs unsqueeze(NodeContext& c) {
  const ValueId x = c.input(0);
  std::vector<int64_t> axes = c.get_ints("axes");
  if (c.opset() >= 13) {
    KILN_ASSIGN_OR_RETURN(axes, c.known_ints(1, "axes"));
  }
  const int64_t rank = c.rank(x) + static_cast<int64_t>(axes.size());
  KILN_ASSIGN_OR_RETURN(axes, c.normalise_axes(std::move(axes), rank));
  return one(c.unsqueeze(x, std::move(axes)));
}

constexpr Handler kHandlers[] = {
    {"", "Flatten", flatten},
    {"", "Reshape", reshape},
    {"", "Squeeze", squeeze},
    {"", "Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Handler> reshape_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
