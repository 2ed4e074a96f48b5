#include "tests/conformance/run_case.h"

#include <algorithm>

#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/pipeline/pipeline.h"
#include "builder/verify/reference.h"
#include "formats/onnx/read_model.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/engine_stage.h"

namespace kiln::conformance {
namespace {

namespace fs = std::filesystem;

// How often more inputs may turn out to decide shapes.
constexpr int kMaxFixingRounds = 8;

Outcome judge_error(const CaseFolder& folder, const Error& error) {
  if (!folder.expect_error) {
    const bool refused = error.code == ErrorCode::kUnsupported;
    return {refused ? Status::kRefused : Status::kFailed, error.message};
  }
  for (const std::string& name : folder.error_must_name) {
    if (error.message.find(name) == std::string::npos) {
      return {Status::kFailed, "the error does not name '" + name + "': " + error.message};
    }
  }
  if (error.message.empty()) return {Status::kFailed, "the error has no message"};
  return {Status::kPassed, ""};
}

Outcome no_error(const CaseFolder& folder) {
  if (folder.expect_error) return {Status::kFailed, "no error was found, expected one"};
  return {Status::kPassed, ""};
}

// Inputs and outputs of the model itself must be dense tensors of numbers.
std::string other_than_tensor(const onnx::Model& model) {
  for (const auto* list : {&model.graph.inputs, &model.graph.outputs}) {
    for (const onnx::ValueInfo& value : *list) {
      if (value.dtype || value.type_text.empty()) continue;
      return "'" + value.name + "' is " + value.type_text + ", expected a tensor of numbers";
    }
  }
  return "";
}

const onnx::Tensor* find_tensor(const std::vector<onnx::Tensor>& tensors, const std::string& name,
                                size_t position) {
  for (const onnx::Tensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  const bool nameless = position < tensors.size() && tensors[position].name.empty();
  return nameless ? &tensors[position] : nullptr;
}

HostTensor to_host(const onnx::Tensor& tensor) { return {tensor.type, tensor.data}; }

bool has_initializer(const onnx::Model& model, const std::string& name) {
  return std::any_of(model.graph.initializers.begin(), model.graph.initializers.end(),
                     [&](const onnx::Tensor& tensor) { return tensor.name == name; });
}

// The fed inputs of one data set, by name.
Result<std::map<std::string, HostTensor>> fed_inputs(const onnx::Model& model,
                                                     const DataSet& data) {
  std::map<std::string, HostTensor> inputs;
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const std::string& name = model.graph.inputs[i].name;
    const onnx::Tensor* tensor = find_tensor(data.inputs, name, i);
    if (has_initializer(model, name)) continue;
    if (!tensor) {
      return Error{ErrorCode::kInvalidArgument, "the data set has no input '" + name + "'"};
    }
    inputs[name] = to_host(*tensor);
  }
  return inputs;
}

// The point at which a data set can be run: its shapes, and the values that shapes depend on.
Result<ShapePoint> point_for(const onnx::Model& model, const std::string& name,
                             const std::map<std::string, HostTensor>& inputs) {
  ShapePoint point;
  point.name = name;
  point.shape_set = name;
  for (const auto& [input, tensor] : inputs) point.inputs[input] = tensor.type.shape;
  for (int round = 0; round < kMaxFixingRounds; ++round) {
    auto check = onnx_import::check_onnx(model, point);
    if (!check.ok()) return std::move(check).error();
    bool more = false;
    for (const std::string& needed : check->needed_values) {
      const auto it = inputs.find(needed);
      if (it == inputs.end() || point.fixed_values.count(needed)) continue;
      const auto& bytes = it->second.bytes.bytes;
      point.fixed_values[needed] = {it->second.type, {bytes.begin(), bytes.end()}};
      more = true;
    }
    if (!more) break;
  }
  return point;
}

Result<std::vector<HostTensor>> import_and_run(const onnx::Model& model, const ShapePoint& point,
                                               const std::map<std::string, HostTensor>& inputs) {
  KILN_ASSIGN_OR_RETURN(const auto imported, onnx_import::import_onnx(model, point));
  auto valid = imported.graph.verify();
  if (!valid.ok()) return std::move(valid).error().context("the imported graph is invalid");
  std::vector<HostTensor> arguments;
  for (ir::ValueId input : imported.graph.inputs()) {
    arguments.push_back(inputs.at(imported.graph.value(input).name));
  }
  return run_reference(imported.graph, arguments);
}

// What is fed, by data set, and what is expected.
struct CaseData {
  std::vector<Request> requests;
  std::vector<DataSet> data_sets;
};

Result<CaseData> read_data(const CaseFolder& folder, const onnx::Model& model) {
  CaseData result;
  for (const auto& path : folder.data_sets) {
    KILN_ASSIGN_OR_RETURN(DataSet data, read_data_set(path));
    KILN_ASSIGN_OR_RETURN(auto inputs, fed_inputs(model, data));
    const std::string name = "d" + std::to_string(result.requests.size());
    KILN_ASSIGN_OR_RETURN(ShapePoint point, point_for(model, name, inputs));
    result.requests.push_back({std::move(point), std::move(inputs)});
    result.data_sets.push_back(std::move(data));
  }
  return result;
}

// The first difference in words, or nothing.
std::string compare_outputs(const CaseFolder& folder, const onnx::Model& model,
                            const std::vector<HostTensor>& found, const DataSet& data) {
  const auto& outputs = model.graph.outputs;
  if (found.size() != outputs.size()) {
    return "found " + std::to_string(found.size()) + " outputs, expected " +
           std::to_string(outputs.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const onnx::Tensor* expected = find_tensor(data.outputs, outputs[i].name, i);
    if (!expected) continue;
    const std::string text = difference(found[i], *expected, folder.tolerance);
    if (!text.empty()) return "output '" + outputs[i].name + "': " + text;
  }
  return "";
}

Result<std::string> import_stage(const CaseFolder& folder, const onnx::Model& model,
                                 const CaseData& data) {
  for (size_t i = 0; i < data.requests.size(); ++i) {
    const Request& request = data.requests[i];
    KILN_ASSIGN_OR_RETURN(const auto found, import_and_run(model, request.point, request.inputs));
    std::string text = compare_outputs(folder, model, found, data.data_sets[i]);
    if (!text.empty()) return text;
  }
  return std::string();
}

std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : default_pipeline()) {
    if (!pass.required) names.emplace_back(pass.name);
  }
  return names;
}

// With the wanted passes off; with `each_pass` also without each pass that did something in turn,
// and without all of them. A pass that did nothing leaves the same engine when it is off.
Result<std::string> engine_stage(const CaseFolder& folder, const onnx::Model& model,
                                 const CaseData& data, const RunOptions& options) {
  const ScratchFolder scratch;
  std::vector<std::vector<std::string>> settings = {options.disabled_passes};
  for (size_t i = 0; i < settings.size(); ++i) {
    const std::vector<std::string> disabled = settings[i];
    std::string label;
    for (const std::string& pass : disabled) label += (label.empty() ? "without " : ", ") + pass;
    auto run = run_engine(folder.folder / "model.onnx", model, data.requests, disabled, scratch);
    if (!run.ok()) {
      return label.empty() ? std::move(run).error() : std::move(run).error().context(label);
    }
    for (size_t k = 0; k < data.requests.size(); ++k) {
      const std::string text = compare_outputs(folder, model, run->outputs[k], data.data_sets[k]);
      if (!text.empty()) return label.empty() ? text : label + ": " + text;
    }
    if (!options.each_pass || i > 0) continue;
    for (const std::string& pass : optional_passes()) {
      if (run->passes.contains(pass)) settings.push_back({pass});
    }
    if (!run->passes.empty()) settings.push_back(optional_passes());
  }
  return std::string();
}

// A case without data can only show an error, or that the model builds.
Outcome build_only(const CaseFolder& folder, const onnx::Model& model) {
  auto points = onnx_import::plan_shape_points(model, {});
  if (!points.ok()) return judge_error(folder, points.error());
  for (const ShapePoint& point : *points) {
    auto imported = onnx_import::import_onnx(model, point);
    if (!imported.ok()) return judge_error(folder, imported.error());
  }
  return no_error(folder);
}

}  // namespace

Outcome run_case(const CaseFolder& folder, const RunOptions& options) {
  const fs::path file = folder.folder / "model.onnx";
  const auto model = onnx::read_model(file);
  if (!model.ok()) return judge_error(folder, model.error());
  if (const std::string other = other_than_tensor(*model); !other.empty()) {
    return judge_error(folder, {ErrorCode::kUnsupported, other});
  }
  if (folder.data_sets.empty()) return build_only(folder, *model);
  const auto data = read_data(folder, *model);
  if (!data.ok()) return judge_error(folder, data.error());
  const auto difference = options.stage == Stage::kImport
                              ? import_stage(folder, *model, *data)
                              : engine_stage(folder, *model, *data, options);
  if (!difference.ok()) return judge_error(folder, difference.error());
  return difference->empty() ? no_error(folder) : Outcome{Status::kFailed, *difference};
}

}  // namespace kiln::conformance
