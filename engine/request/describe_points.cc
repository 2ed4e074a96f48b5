#include "engine/request/describe_points.h"

#include <algorithm>

namespace kiln {

std::string describe_type(const TensorType& type, int32_t batch_axis, int64_t batch) {
  if (batch_axis < 0) return to_string(type);
  std::string text = std::string(to_string(type.dtype)) + "[";
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (axis > 0) text += 'x';
    if (static_cast<int32_t>(axis) != batch_axis) {
      text += std::to_string(type.shape[axis]);
      continue;
    }
    const int64_t factor = type.shape[axis] / batch;
    text += (factor == 1 ? "" : std::to_string(factor)) + "B";
  }
  return text + "]";
}

std::string describe_points(const plan::Plan& plan) {
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < std::min(plan.points.size(), kMost); ++i) {
    const plan::ShapePoint& point = plan.points[i];
    text += (i > 0 ? ", " : "") + point.name + " (";
    for (size_t input = 0; input < plan.inputs.size(); ++input) {
      text +=
          (input > 0 ? ", " : "") + plan.inputs[input].name + " " + to_string(point.inputs[input]);
    }
    text += ")";
  }
  if (plan.points.size() > kMost) {
    text += " and " + std::to_string(plan.points.size() - kMost) + " more";
  }
  return text;
}

}  // namespace kiln
