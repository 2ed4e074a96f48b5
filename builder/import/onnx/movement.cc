// Operators that move whole rows or repeat elements: all become index maps.
#include <algorithm>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

std::string number(int64_t value) { return std::to_string(value); }

Outputs transpose(NodeContext& c) {
  auto perm = c.get_ints("perm");
  if (!c.has_attribute("perm")) {
    perm.resize(c.input_type(0).shape.size());
    std::iota(perm.rbegin(), perm.rend(), int64_t{0});
  }
  return one(c.transpose(c.input(0), std::move(perm)));
}

Outputs expand(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(Shape target, c.known_ints(1, "shape"));
  const Shape& shape = c.input_type(0).shape;
  if (target.size() < shape.size()) target.insert(target.begin(), shape.size() - target.size(), 1);
  // A 1 in the target keeps the input's extent.
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t& extent = target[target.size() - shape.size() + i];
    if (extent == 1) extent = shape[i];
  }
  return one(c.broadcast(c.input(0), std::move(target)));
}

// Each repeated axis d becomes [repeat, d] by broadcasting, then one axis again.
Outputs tile(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const auto repeats, c.known_ints(1, "repeats"));
  const Shape shape = c.input_type(0).shape;
  if (repeats.size() != shape.size()) {
    return c.fail("repeats has " + number(int64_t(repeats.size())) +
                  " entries, the input's rank is " + number(int64_t(shape.size())));
  }
  Shape split, repeated, merged;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0) return c.fail("repeats has the entry " + number(repeats[i]));
    if (repeats[i] != 1) {
      split.push_back(1);
      repeated.push_back(repeats[i]);
    }
    split.push_back(shape[i]);
    repeated.push_back(shape[i]);
    int64_t extent = 0;
    if (__builtin_mul_overflow(repeats[i], shape[i], &extent))
      return c.fail("repeats is too large");
    merged.push_back(extent);
  }
  return one(c.reshape(c.broadcast(c.reshape(c.input(0), split), repeated), merged));
}

Outputs concat(NodeContext& c) {
  const auto parts = c.inputs();
  if (parts.empty()) return c.fail("found no inputs, expected at least 1");
  KILN_RETURN_IF_ERROR(c.require_same_dtype(parts));
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 1, c.rank(parts[0])));
  return one(c.concat(parts, axis));
}

Outputs gather(NodeContext& c) {
  constexpr int64_t kMaxChecked = 1 << 20;
  const ValueId x = c.input(0), indices = c.input(1);
  KILN_ASSIGN_OR_RETURN(const int64_t axis, c.axis("axis", 0, c.rank(x)));
  const int64_t extent = c.shape(x).at(at(axis));
  if (c.type(indices).elements() <= kMaxChecked) {
    const auto known = c.constant_of(indices);
    for (int64_t index : known ? to_ints(*known) : std::vector<int64_t>()) {
      if (index >= -extent && index < extent) continue;
      return c.fail("index " + number(index) + " is outside of axis " + number(axis) +
                    " with extent " + number(extent));
    }
  }
  return one(c.gather(x, indices, axis));
}

struct Blocks {
  int64_t batch, channels, height, width, block;
};

Result<Blocks> blocks(NodeContext& c) {
  const Shape& shape = c.input_type(0).shape;
  const int64_t block = c.get_int("blocksize", 0);
  if (shape.size() != 4 || block < 1 || block > (1 << 15)) {
    return c.fail("input is " + to_string(c.input_type(0)) + " and blocksize " + number(block) +
                  ", expected rank 4 and at least 1");
  }
  return Blocks{shape[0], shape[1], shape[2], shape[3], block};
}

Outputs depth_to_space(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Blocks b, blocks(c));
  const int64_t area = b.block * b.block, depth = b.channels / area;
  const bool crd = c.get_string("mode", "DCR") == "CRD";
  const Shape split = crd ? Shape{b.batch, depth, b.block, b.block, b.height, b.width}
                          : Shape{b.batch, b.block, b.block, depth, b.height, b.width};
  const ValueId parts = c.reshape(c.input(0), split);
  const ValueId moved = c.transpose(
      parts, crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  return one(c.reshape(moved, {b.batch, depth, b.height * b.block, b.width * b.block}));
}

Outputs space_to_depth(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const Blocks b, blocks(c));
  const int64_t height = b.height / b.block, width = b.width / b.block;
  const bool crd = c.get_string("mode", "DCR") == "CRD";
  const ValueId parts =
      c.reshape(c.input(0), {b.batch, b.channels, height, b.block, width, b.block});
  const ValueId moved = c.transpose(
      parts, crd ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  return one(c.reshape(moved, {b.batch, b.channels * b.block * b.block, height, width}));
}

constexpr Handler kHandlers[] = {
    {"", "Concat", concat},       {"", "DepthToSpace", depth_to_space}, {"", "Expand", expand},
    {"", "Gather", gather},       {"", "SpaceToDepth", space_to_depth}, {"", "Tile", tile},
    {"", "Transpose", transpose},
};

}  // namespace

std::span<const Handler> movement_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
