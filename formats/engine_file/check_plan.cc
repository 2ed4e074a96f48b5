#include "formats/engine_file/check_plan.h"

#include <algorithm>
#include <set>
#include <string>

#include "formats/engine_file/check_steps.h"

namespace kiln::plan {
namespace {

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

Result<> check_origin(const Origin& origin) {
  if (origin.world_size == 0 || origin.rank >= origin.world_size) {
    return corrupt("origin: rank is " + std::to_string(origin.rank) + " of " +
                   std::to_string(origin.world_size));
  }
  return Ok();
}

Result<> check_io_names(const std::vector<IoTensor>& tensors, const char* kind) {
  std::set<std::string_view> names;
  for (const IoTensor& tensor : tensors) {
    if (tensor.name.empty()) return corrupt(std::string(kind) + " has an empty name");
    if (!names.insert(tensor.name).second) {
      return corrupt(std::string(kind) + " '" + tensor.name + "' is there twice");
    }
  }
  return Ok();
}

Result<> check_io_type(const IoTensor& tensor, const TensorType& type, int64_t batch) {
  auto sized = check_type(type);
  if (!sized) return std::move(sized).error().context("'" + tensor.name + "'");
  if (tensor.batch_axis < -1 || tensor.batch_axis >= type.rank()) {
    return corrupt("'" + tensor.name + "': batch axis is " + std::to_string(tensor.batch_axis) +
                   ", type is " + to_string(type));
  }
  if (tensor.batch_axis >= 0 && batch > 0) {
    const int64_t extent = type.shape[static_cast<size_t>(tensor.batch_axis)];
    if (extent < batch || extent % batch != 0) {
      return corrupt("'" + tensor.name + "': extent of the batch axis is " +
                     std::to_string(extent) + ", expected a multiple of " + std::to_string(batch));
    }
  }
  return Ok();
}

Result<> check_io_types(const std::vector<IoTensor>& tensors, const std::vector<TensorType>& types,
                        int64_t batch, const char* kind) {
  if (types.size() != tensors.size()) {
    return corrupt("has " + std::to_string(types.size()) + " " + kind + " types, expected " +
                   std::to_string(tensors.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    auto checked = check_io_type(tensors[i], types[i], batch);
    if (!checked) return std::move(checked).error().context(kind);
  }
  return Ok();
}

// So that no layout of them overflows.
Result<> check_io_bytes(const ShapePoint& point) {
  uint64_t bytes = point.arena_bytes;
  for (const auto* types : {&point.inputs, &point.outputs}) {
    for (const TensorType& type : *types) {
      bytes += static_cast<uint64_t>(type.bytes());
      if (bytes > kMostArenaBytes) {
        return corrupt("arena, inputs and outputs have more than " +
                       std::to_string(kMostArenaBytes) + " bytes together");
      }
    }
  }
  return Ok();
}

Result<> check_fixed_inputs(const ShapePoint& point) {
  std::set<uint32_t> seen;
  for (const FixedInput& fixed : point.fixed_inputs) {
    if (fixed.input >= point.inputs.size() || !seen.insert(fixed.input).second) {
      return corrupt("fixed input number " + std::to_string(fixed.input) +
                     " is out of range or there twice");
    }
    const auto expected = static_cast<size_t>(point.inputs[fixed.input].bytes());
    if (fixed.value.size() != expected) {
      return corrupt("fixed input " + std::to_string(fixed.input) + " has " +
                     std::to_string(fixed.value.size()) + " bytes, expected " +
                     std::to_string(expected));
    }
  }
  return Ok();
}

Result<> check_point(const Plan& plan, const ShapePoint& point) {
  if (point.batch < 0) return corrupt("batch is " + std::to_string(point.batch));
  if (point.arena_bytes > kMostArenaBytes || point.arena_lower_bound_bytes > point.arena_bytes) {
    return corrupt("arena is " + std::to_string(point.arena_bytes) + " bytes with lower bound " +
                   std::to_string(point.arena_lower_bound_bytes) + ", expected at most " +
                   std::to_string(kMostArenaBytes) + " and no less than the bound");
  }
  KILN_RETURN_IF_ERROR(check_io_types(plan.inputs, point.inputs, point.batch, "input"));
  KILN_RETURN_IF_ERROR(check_io_types(plan.outputs, point.outputs, point.batch, "output"));
  KILN_RETURN_IF_ERROR(check_io_bytes(point));
  KILN_RETURN_IF_ERROR(check_fixed_inputs(point));
  return check_steps(plan, point);
}

Result<> check_constants(const Plan& plan) {
  uint64_t end = 0;
  for (const Constant& constant : plan.constants) {
    if (constant.offset % kConstantAlignment != 0 || constant.offset < end) {
      return corrupt("constant '" + constant.name + "': offset is " +
                     std::to_string(constant.offset) + ", expected a multiple of 64 from " +
                     std::to_string(end));
    }
    if (constant.offset > plan.weights.size() ||
        constant.bytes > plan.weights.size() - constant.offset) {
      return corrupt("constant '" + constant.name + "': " + std::to_string(constant.bytes) +
                     " bytes at " + std::to_string(constant.offset) + " end after the " +
                     std::to_string(plan.weights.size()) + " bytes of weights");
    }
    end = constant.offset + constant.bytes;
  }
  return Ok();
}

}  // namespace

Result<> check_type(const TensorType& type) {
  if (static_cast<uint8_t>(type.dtype) >= kDTypeCount) {
    return corrupt("dtype is " + std::to_string(int(type.dtype)) + ", expected less than " +
                   std::to_string(kDTypeCount));
  }
  if (type.shape.size() > kMostRank) {
    return corrupt("rank is " + std::to_string(type.shape.size()) + ", expected at most " +
                   std::to_string(kMostRank));
  }
  const auto elements = checked_element_count(type.shape);
  if (!elements || *elements > kMostElements) {
    return corrupt("shape " + to_string(type.shape) +
                   " has a negative extent or too many elements");
  }
  return Ok();
}

Result<> check_plan(const Plan& plan) {
  KILN_RETURN_IF_ERROR(check_origin(plan.origin));
  KILN_RETURN_IF_ERROR(check_io_names(plan.inputs, "input"));
  KILN_RETURN_IF_ERROR(check_io_names(plan.outputs, "output"));
  KILN_RETURN_IF_ERROR(check_constants(plan));
  for (const PluginReference& plugin : plan.plugins) {
    if (plugin.name.empty()) return corrupt("a plugin has an empty name");
  }
  if (plan.points.empty()) return corrupt("has no shape point");
  std::set<std::string_view> names;
  for (const ShapePoint& point : plan.points) {
    if (!names.insert(point.name).second) {
      return corrupt("shape point '" + point.name + "' is there twice");
    }
    auto checked = check_point(plan, point);
    if (!checked) return std::move(checked).error().context("point '" + point.name + "'");
  }
  return Ok();
}

}  // namespace kiln::plan
