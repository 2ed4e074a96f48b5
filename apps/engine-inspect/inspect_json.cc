#include "apps/engine-inspect/inspect_json.h"

#include <nlohmann/json.hpp>

#include "apps/engine-inspect/arena_buffers.h"
#include "apps/engine-inspect/step_text.h"
#include "formats/json/parse_json.h"
#include "formats/report/quantity_text.h"

namespace kiln::inspect {
namespace {

using Json = nlohmann::ordered_json;

Json type_json(const TensorType& type) {
  return {{"dtype", std::string(to_string(type.dtype))}, {"shape", type.shape}};
}

Json buffer_json(const plan::BufferRef& buffer) {
  Json json = {
      {"space", space_name(buffer.space)}, {"offset", buffer.offset}, {"bytes", buffer.bytes}};
  if (buffer.space == plan::BufferRef::Space::kInput ||
      buffer.space == plan::BufferRef::Space::kOutput) {
    json["index"] = buffer.index;
  }
  return json;
}

Json operands_json(const std::vector<plan::Operand>& operands) {
  Json list = Json::array();
  for (const plan::Operand& operand : operands) {
    Json json = buffer_json(operand.buffer);
    json.update(type_json(operand.type));
    list.push_back(std::move(json));
  }
  return list;
}

struct AddFields {
  Json& json;

  void call(const auto& step) {
    json["inputs"] = operands_json(step.inputs);
    json["outputs"] = operands_json(step.outputs);
    if (step.workspace.bytes > 0) json["workspace"] = buffer_json(step.workspace);
  }
  void operator()(const plan::HostOperation& step) { call(step); }
  void operator()(const plan::PluginCall& step) { call(step); }
  void operator()(const plan::Matmul& step) { call(step); }
  void operator()(const plan::CudnnGraph& step) { call(step); }
  void operator()(const plan::KernelLaunch& step) {
    json["module"] = step.module;
    json["entry"] = step.entry;
    json["grid"] = step.grid;
    json["block"] = step.block;
    json["shared_bytes"] = step.shared_bytes;
    json["programmatic"] = step.programmatic;
    for (const plan::TensorMap& map : step.tensor_maps) {
      json["tensor_maps"].push_back(
          {{"operand", map.operand}, {"columns", map.columns}, {"box_rows", map.box_rows}});
    }
    call(step);
  }
  void operator()(const plan::Copy& step) {
    json["from"] = buffer_json(step.from);
    json["to"] = buffer_json(step.to);
  }
  void operator()(const plan::Branch& step) {
    json["condition"] = buffer_json(step.condition);
    json["then_steps"] = step.then_steps;
    json["else_steps"] = step.else_steps;
  }
  void operator()(const plan::Repeat& step) {
    json["trip_count"] = buffer_json(step.trip_count);
    json["condition"] = buffer_json(step.condition);
    json["iteration"] = buffer_json(step.iteration);
    json["body_steps"] = step.body_steps;
  }
};

Json steps_json(const plan::Plan& plan, const plan::ShapePoint& point, bool full) {
  Json list = Json::array();
  for (size_t i = 0; i < point.steps.size(); ++i) {
    const plan::StepAction& action = point.steps[i].action;
    Json json = {{"kind", action_kind(action)},
                 {"region", point.steps[i].region},
                 {"region_name", region_name(point, i)}};
    const std::string operation = operation_text(plan, action, full);
    if (!operation.empty()) json["operation"] = operation;
    std::visit(AddFields{json}, action);
    list.push_back(std::move(json));
  }
  return list;
}

Json buffers_json(const plan::ShapePoint& point) {
  Json list = Json::array();
  for (const ArenaBuffer& buffer : arena_buffers(point)) {
    list.push_back({{"offset", buffer.offset},
                    {"bytes", buffer.bytes},
                    {"first_step", buffer.first_step},
                    {"last_step", buffer.last_step},
                    {"workspace", buffer.workspace}});
  }
  return list;
}

Json types_json(const std::vector<TensorType>& types) {
  Json list = Json::array();
  for (const TensorType& type : types) list.push_back(type_json(type));
  return list;
}

Json point_json(const plan::Plan& plan, const plan::ShapePoint& point, const Options& options) {
  Json json = {{"name", point.name},
               {"batch", point.batch},
               {"inputs", types_json(point.inputs)},
               {"outputs", types_json(point.outputs)},
               {"arena_bytes", point.arena_bytes},
               {"arena_lower_bound_bytes", point.arena_lower_bound_bytes},
               {"regions", point.region_names.size()},
               {"step_count", point.steps.size()}};
  if (options.steps) json["steps"] = steps_json(plan, point, options.explain);
  if (options.memory) json["arena_buffers"] = buffers_json(point);
  return json;
}

Json tensors_json(const std::vector<plan::IoTensor>& tensors) {
  Json list = Json::array();
  for (const plan::IoTensor& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"batch_axis", tensor.batch_axis}});
  }
  return list;
}

Json origin_json(const plan::Origin& origin) {
  return {{"kiln_version", origin.kiln_version},
          {"target", origin.target == plan::Target::kHost ? "host" : "cuda"},
          {"device", origin.device},
          {"compute_capability", origin.compute_capability},
          {"driver_version", origin.driver_version},
          {"cuda_version", origin.cuda_version},
          {"cublaslt_version", origin.cublaslt_version},
          {"cudnn_version", origin.cudnn_version},
          {"precision", origin.precision},
          {"verified", origin.verified},
          {"model_name", origin.model_name},
          {"model_hash", report::hash_text(origin.model_hash)},
          {"rank", origin.rank},
          {"world_size", origin.world_size}};
}

}  // namespace

std::string to_json(const plan::Plan& plan, const Options& options) {
  Json json = {
      {"engine", options.engine.string()},   {"origin", origin_json(plan.origin)},
      {"inputs", tensors_json(plan.inputs)}, {"outputs", tensors_json(plan.outputs)},
      {"batch_padding", plan.batch_padding}, {"batch_padding_reason", plan.batch_padding_reason},
      {"weights_bytes", plan.weights.size()}};
  for (const plan::PluginReference& plugin : plan.plugins) {
    json["plugins"].push_back({{"name", plugin.name}, {"version", plugin.version}});
  }
  json["points"] = Json::array();
  for (const plan::ShapePoint& point : plan.points) {
    if (!options.point.empty() && point.name != options.point) continue;
    json["points"].push_back(point_json(plan, point, options));
  }
  json["constants"] = Json::array();
  for (const plan::Constant& constant : plan.constants) {
    json["constants"].push_back({{"name", constant.name},
                                 {"offset", constant.offset},
                                 {"bytes", constant.bytes},
                                 {"hash", report::hash_text(constant.hash)}});
  }
  auto report = parse_json<Json>(plan.report_json);
  json["report"] = report ? *std::move(report) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kiln::inspect
