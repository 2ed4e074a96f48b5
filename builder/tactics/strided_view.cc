#include "builder/tactics/strided_view.h"

#include <algorithm>

namespace kiln {
namespace {

Error refuse(const char* why) { return {ErrorCode::kUnsupported, why}; }

StridedView whole(const ir::Graph& body, ir::ValueId value) {
  const Shape& shape = body.type(value).shape;
  return {value, shape, row_major_strides(shape), 0};
}

// The view behind a node, from the view in front of it.
Result<> apply(const ir::Op& op, const Shape& result, StridedView& view) {
  if (const auto* transpose = std::get_if<ir::Transpose>(&op)) {
    const StridedView before = view;
    for (size_t i = 0; i < transpose->perm.size(); ++i) {
      const auto from = static_cast<size_t>(transpose->perm[i]);
      view.dims[i] = before.dims[from];
      view.strides[i] = before.strides[from];
    }
    return Ok();
  }
  if (const auto* slice = std::get_if<ir::Slice>(&op)) {
    for (size_t i = 0; i < slice->starts.size(); ++i) {
      view.offset += slice->starts[i] * view.strides[i];
      view.strides[i] *= slice->steps[i];
    }
    view.dims = slice->sizes;
    return Ok();
  }
  if (std::holds_alternative<ir::Reshape>(op)) {
    auto strides = reshaped_strides(view.dims, view.strides, result);
    if (!strides) return refuse("a reshape of an operand needs a copy");
    view.dims = result;
    view.strides = std::move(*strides);
    return Ok();
  }
  return refuse("an operand is computed in the region");
}

}  // namespace

std::optional<Shape> reshaped_strides(const Shape& dims, const Shape& strides, const Shape& to) {
  Shape result(to.size(), 1);
  size_t i = 0, j = 0;
  // Runs of old and new axes with the same number of elements; a run of old ones must be dense.
  while (i < dims.size() || j < to.size()) {
    if (i < dims.size() && dims[i] == 1) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      ++j;
      continue;
    }
    if (i == dims.size() || j == to.size()) return std::nullopt;
    const size_t first = j;
    int64_t from = dims[i], into = to[j];
    int64_t innermost = strides[i];
    while (from != into) {
      if (into < from) {
        if (++j == to.size()) return std::nullopt;
        into *= to[j];
        continue;
      }
      do {
        if (++i == dims.size()) return std::nullopt;
      } while (dims[i] == 1);
      if (innermost != strides[i] * dims[i]) return std::nullopt;
      innermost = strides[i];
      from *= dims[i];
    }
    int64_t stride = innermost;
    for (size_t axis = j + 1; axis-- > first;) {
      result[axis] = stride;
      stride *= to[axis];
    }
    ++i;
    ++j;
  }
  return result;
}

Result<StridedView> view_of_input(const ir::Graph& body, ir::ValueId value,
                                  std::vector<ir::NodeId>& passed) {
  std::vector<ir::NodeId> path;
  ir::ValueId source = value;
  while (body.value(source).producer != ir::kNoNode) {
    path.push_back(body.value(source).producer);
    if (body.node(path.back()).inputs.empty())
      return refuse("an operand is computed in the region");
    source = body.node(path.back()).inputs[0];
  }
  StridedView view = whole(body, source);
  for (auto id = path.rbegin(); id != path.rend(); ++id) {
    const ir::Node& node = body.node(*id);
    KILN_RETURN_IF_ERROR(apply(node.op, body.type(node.outputs[0]).shape, view));
  }
  passed.insert(passed.end(), path.begin(), path.end());
  return view;
}

Result<StridedView> view_in_output(const ir::Graph& body, ir::ValueId value,
                                   std::vector<ir::NodeId>& passed) {
  const ir::ValueId output = body.outputs()[0];
  StridedView view = whole(body, output);
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
  return view;
}

}  // namespace kiln
