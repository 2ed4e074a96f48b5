#include "builder/tactics/strided_view.h"

#include <algorithm>
#include <optional>
#include <span>

namespace kiln {
namespace {

Error refuse(const char* why) { return {ErrorCode::kUnsupported, why}; }

struct Part {
  int64_t extent = 1, stride = 1;  // in elements
};

// An axis is one part or, where a reshape joined axes that do not follow one another in memory,
// several, the outermost first. A later reshape may split it again: batch and heads that are one
// axis while tokens pass them are two parts on the way, and single strides in the end.
using Axis = std::vector<Part>;

struct NestedView {
  std::vector<Axis> axes;
  int64_t offset = 0;
};

NestedView whole(const Shape& shape) {
  const Shape strides = row_major_strides(shape);
  NestedView view;
  for (size_t i = 0; i < shape.size(); ++i) view.axes.push_back({{shape[i], strides[i]}});
  return view;
}

// Puts `part` inside the others of the axis, as one with the last where they are dense.
void append(Axis& axis, Part part) {
  if (axis.size() == 1 && axis[0].extent == 1) axis.clear();
  if (part.extent == 1 && !axis.empty()) return;
  if (!axis.empty() && axis.back().stride == part.stride * part.extent) {
    part.extent *= axis.back().extent;
    axis.pop_back();
  }
  axis.push_back(part);
}

// Takes an axis of `extent` off the front of `rest`, a part of which may be split for it.
std::optional<Axis> split_off(std::span<Part>& rest, int64_t extent) {
  Axis axis;
  while (extent > 1) {
    if (rest.empty()) return std::nullopt;
    Part& outer = rest.front();
    if (extent % outer.extent == 0) {
      axis.push_back(outer);
      extent /= outer.extent;
      rest = rest.subspan(1);
      continue;
    }
    if (outer.extent % extent != 0) return std::nullopt;
    outer.extent /= extent;
    axis.push_back({extent, outer.stride * outer.extent});
    extent = 1;
  }
  if (axis.empty()) axis.push_back({});
  return axis;
}

Result<> reshape(const Shape& to, NestedView& view) {
  if (std::find(to.begin(), to.end(), 0) != to.end()) return refuse("an operand is empty");
  Axis line;  // all axes as one
  for (const Axis& axis : view.axes) {
    for (const Part& part : axis) append(line, part);
  }
  std::span<Part> rest = line;
  view.axes.clear();
  for (int64_t extent : to) {
    auto axis = split_off(rest, extent);
    if (!axis) return refuse("a reshape of an operand needs a copy");
    view.axes.push_back(*std::move(axis));
  }
  return Ok();
}

Result<> slice(const ir::Slice& slice, NestedView& view) {
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    Axis& axis = view.axes[i];
    if (axis.size() > 1) {
      int64_t extent = 1;
      for (const Part& part : axis) extent *= part.extent;
      if (slice.sizes[i] != extent || slice.steps[i] != 1) {
        return refuse("a slice of an operand needs a copy");
      }
      continue;
    }
    view.offset += slice.starts[i] * axis[0].stride;
    axis[0] = {slice.sizes[i], axis[0].stride * slice.steps[i]};
  }
  return Ok();
}

// What is repeated has stride 0.
void broadcast(const Shape& to, NestedView& view) {
  view.axes.insert(view.axes.begin(), to.size() - view.axes.size(), {{1, 0}});
  for (size_t i = 0; i < to.size(); ++i) {
    Axis& axis = view.axes[i];
    if (axis.size() == 1 && axis[0].extent != to[i]) axis[0] = {to[i], 0};
  }
}

// The view behind a node, from the view in front of it.
Result<> apply(const ir::Op& op, const Shape& result, NestedView& view) {
  if (const auto* transpose = std::get_if<ir::Transpose>(&op)) {
    const std::vector<Axis> before = view.axes;
    for (size_t i = 0; i < transpose->perm.size(); ++i) {
      view.axes[i] = before[static_cast<size_t>(transpose->perm[i])];
    }
    return Ok();
  }
  if (const auto* sliced = std::get_if<ir::Slice>(&op)) return slice(*sliced, view);
  if (std::holds_alternative<ir::Reshape>(op)) return reshape(result, view);
  return refuse("an operand is computed in the region");
}

// An axis that still has several parts, as batch and heads joined in one while tokens lie between
// them in memory, is no stride.
Result<StridedView> flat(ir::ValueId source, const NestedView& view) {
  StridedView made{source, {}, {}, view.offset};
  for (const Axis& axis : view.axes) {
    if (axis.size() > 1) return refuse("an axis of an operand is no single stride");
    made.dims.push_back(axis[0].extent);
    made.strides.push_back(axis[0].stride);
  }
  return made;
}

// Without what repeats: the outer part of the outermost axis, or all of an axis.
void drop_repeats(NestedView& view) {
  for (size_t i = 0; i < view.axes.size(); ++i) {
    Axis& axis = view.axes[i];
    const bool whole = std::all_of(axis.begin(), axis.end(), [](auto& p) { return p.stride == 0; });
    if (whole) axis = {{1, 0}};
    if (i == 0 && axis.size() == 2 && axis[0].stride == 0) axis.erase(axis.begin());
  }
}

// Whoever computes in f32 reads f16 and bf16 as what such a cast makes of them.
bool only_widens(const ir::Graph& body, const ir::Node& node) {
  const auto* cast = std::get_if<ir::Cast>(&node.op);
  const DType from = body.type(node.inputs[0]).dtype;
  return cast != nullptr && cast->to == DType::kF32 &&
         (from == DType::kF16 || from == DType::kBF16);
}

Result<NestedView> nested_view(const ir::Graph& body, ir::ValueId value, bool may_repeat,
                               ir::ValueId& source, std::vector<ir::NodeId>& passed) {
  std::vector<ir::NodeId> path;
  source = value;
  while (body.value(source).producer != ir::kNoNode) {
    path.push_back(body.value(source).producer);
    if (body.node(path.back()).inputs.empty())
      return refuse("an operand is computed in the region");
    source = body.node(path.back()).inputs[0];
  }
  NestedView view = whole(body.type(source).shape);
  for (auto id = path.rbegin(); id != path.rend(); ++id) {
    const ir::Node& node = body.node(*id);
    const Shape& shape = body.type(node.outputs[0]).shape;
    if (may_repeat && only_widens(body, node)) continue;
    if (may_repeat && std::holds_alternative<ir::Broadcast>(node.op)) {
      broadcast(shape, view);
    } else {
      KILN_RETURN_IF_ERROR(apply(node.op, shape, view));
    }
  }
  passed.insert(passed.end(), path.begin(), path.end());
  return view;
}

}  // namespace

Result<StridedView> view_of_input(const ir::Graph& body, ir::ValueId value,
                                  std::vector<ir::NodeId>& passed) {
  ir::ValueId source;
  KILN_ASSIGN_OR_RETURN(const NestedView view, nested_view(body, value, false, source, passed));
  return flat(source, view);
}

Result<StridedView> repeated_view_of_input(const ir::Graph& body, ir::ValueId value,
                                           std::vector<ir::NodeId>& passed) {
  ir::ValueId source;
  KILN_ASSIGN_OR_RETURN(NestedView view, nested_view(body, value, true, source, passed));
  drop_repeats(view);
  return flat(source, view);
}

Result<StridedView> view_in_output(const ir::Graph& body, ir::ValueId value,
                                   std::vector<ir::NodeId>& passed) {
  const ir::ValueId output = body.outputs()[0];
  NestedView view = whole(body.type(output).shape);
  ir::ValueId at = output;
  while (at != value) {
    const ir::NodeId producer = body.value(at).producer;
    if (producer == ir::kNoNode) return refuse("the output is no view of the result");
    const ir::Node& node = body.node(producer);
    if (node.inputs.empty()) return refuse("the output is no view of the result");
    const Shape& before = body.type(node.inputs[0]).shape;
    if (const auto* transpose = std::get_if<ir::Transpose>(&node.op)) {
      std::vector<int64_t> inverse(transpose->perm.size());
      for (size_t i = 0; i < inverse.size(); ++i) {
        inverse[static_cast<size_t>(transpose->perm[i])] = static_cast<int64_t>(i);
      }
      KILN_RETURN_IF_ERROR(apply(ir::Transpose{inverse}, before, view));
    } else if (std::holds_alternative<ir::Reshape>(node.op)) {
      KILN_RETURN_IF_ERROR(apply(node.op, before, view));
    } else {
      return refuse("something is computed from the result");
    }
    passed.push_back(producer);
    at = node.inputs[0];
  }
  return flat(output, view);
}

}  // namespace kiln
