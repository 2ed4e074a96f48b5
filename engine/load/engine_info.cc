#include "engine/load/engine_info.h"

namespace kiln {
namespace {

std::vector<TensorInfo> tensors(const std::vector<plan::IoTensor>& io,
                                const std::vector<TensorType>& types) {
  std::vector<TensorInfo> infos;
  for (size_t i = 0; i < io.size(); ++i) {
    infos.push_back({io[i].name, types[i], io[i].batch_axis});
  }
  return infos;
}

}  // namespace

EngineInfo make_info(const plan::Plan& plan, const TargetEngine& target) {
  EngineInfo info;
  info.kiln_version = plan.origin.kiln_version;
  info.target = plan.origin.target == plan::Target::kHost ? "host" : "cuda";
  info.device = plan.origin.device;
  info.precision = plan.origin.precision;
  info.model_name = plan.origin.model_name;
  info.verified = plan.origin.verified;
  info.batch_padding = plan.batch_padding;
  info.batch_padding_reason = plan.batch_padding_reason;
  for (const plan::ShapePoint& point : plan.points) {
    info.points.push_back({.name = point.name,
                           .batch = point.batch,
                           .inputs = tensors(plan.inputs, point.inputs),
                           .outputs = tensors(plan.outputs, point.outputs),
                           .arena_bytes = point.arena_bytes,
                           .arena_lower_bound_bytes = point.arena_lower_bound_bytes,
                           .steps = point.steps.size()});
  }
  info.weights_bytes = plan.weights.size();
  info.context_bytes = target.context_bytes();
  info.shared_bytes = target.shared_bytes();
  info.device_address = target.device_address();
  info.report_json = plan.report_json;
  return info;
}

}  // namespace kiln
