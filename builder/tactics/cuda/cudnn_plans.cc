#include "builder/tactics/cuda/cudnn_plans.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "builder/tactics/cuda/cudnn_operation_graph.h"

namespace kiln {
namespace {

using cuda::CudnnApi;
using cuda::CudnnDescriptor;
using cuda::DescriptorWriter;

Error unsupported(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

Result<CudnnDescriptor> empty(const CudnnApi& cudnn, cudnnBackendDescriptorType_t type) {
  return DescriptorWriter(cudnn, type, "a result of cuDNN").finish_unfinalized();
}

// Descriptors that `from` holds under `name`, of `type`; at most `most`.
Result<std::vector<CudnnDescriptor>> descriptors_of(const CudnnApi& cudnn,
                                                    cudnnBackendDescriptor_t from,
                                                    cudnnBackendAttributeName_t name,
                                                    cudnnBackendDescriptorType_t type,
                                                    size_t most) {
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 0; i < most; ++i) {
    KILN_ASSIGN_OR_RETURN(CudnnDescriptor one, empty(cudnn, type));
    raw.push_back(one.get());
    found.push_back(std::move(one));
  }
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(cuda::check(
      cudnn,
      cudnn.get_attribute(from, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(most),
                          &count, static_cast<void*>(raw.data())),
      "reading from cuDNN"));
  found.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, static_cast<int64_t>(most))));
  return found;
}

using NumericalNotes = std::vector<cudnnBackendNumericalNote_t>;

Result<NumericalNotes> notes_of(const CudnnApi& cudnn, const CudnnDescriptor& engine) {
  NumericalNotes notes(16);
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(
      cuda::check(cudnn,
                  cudnn.get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                      CUDNN_TYPE_NUMERICAL_NOTE, 16, &count, notes.data()),
                  "reading an engine's notes"));
  notes.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, 16)));
  return notes;
}

// Whether a plan of the engine can be loaded only where cuDNN finds NVRTC, or wants operands in
// an order of its own.
Result<bool> needs_more_than_cudnn(const CudnnApi& cudnn, const CudnnDescriptor& engine) {
  cudnnBackendBehaviorNote_t notes[16];
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(
      cuda::check(cudnn,
                  cudnn.get_attribute(engine.get(), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                      CUDNN_TYPE_BEHAVIOR_NOTE, 16, &count, notes),
                  "reading how an engine behaves"));
  return std::any_of(notes, notes + std::clamp<int64_t>(count, 0, 16),
                     [](cudnnBackendBehaviorNote_t note) {
                       return note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION ||
                              note == CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER ||
                              note == CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER;
                     });
}

bool is_f32(const CudnnProblem& problem) {
  return std::any_of(problem.tensors.begin(), problem.tensors.end(), [](const CudnnTensor& t) {
    return t.dtype == DType::kF32 && !t.is_virtual && !t.by_value;
  });
}

// Tensor cores take f32 operands as TF32.
bool rounds_to_tf32(const NumericalNotes& notes, const CudnnProblem& problem) {
  return is_f32(problem) &&
         std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
}

// Whether results of an engine with these notes are repeatable and as exact as f32 sums, but for
// TF32.
bool acceptable(const NumericalNotes& notes) {
  return std::all_of(notes.begin(), notes.end(), [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
    // not: narrower sums, FFT, Winograd, unrepeatable
  });
}

Result<std::string> text_of(const CudnnApi& cudnn, const CudnnDescriptor& config,
                            const CudnnDescriptor& engine) {
  KILN_ASSIGN_OR_RETURN(const int64_t index, engine.get_int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                                            "asking an engine for its number"));
  std::string text = "e" + std::to_string(index);
  KILN_ASSIGN_OR_RETURN(
      const auto knobs,
      descriptors_of(cudnn, config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                     CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS));
  for (const CudnnDescriptor& knob : knobs) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    int64_t count = 0;
    KILN_RETURN_IF_ERROR(
        cuda::check(cudnn,
                    cudnn.get_attribute(knob.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                        CUDNN_TYPE_KNOB_TYPE, 1, &count, &type),
                    "reading a knob's type"));
    KILN_ASSIGN_OR_RETURN(const int64_t value, knob.get_int(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                            "reading a knob's value"));
    text += "." + std::to_string(static_cast<int>(type)) + "=" + std::to_string(value);
  }
  return text;
}

struct EngineChoice {
  int64_t engine = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
};

std::optional<int64_t> number(std::string_view& text) {
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end.ptr - text.data()));
  return value;
}

bool skip(std::string_view& text, char letter) {
  if (text.empty() || text[0] != letter) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<EngineChoice> parse_engine(std::string_view text) {
  EngineChoice choice;
  if (!skip(text, 'e')) return std::nullopt;
  const auto engine = number(text);
  if (!engine) return std::nullopt;
  choice.engine = *engine;
  while (!text.empty()) {
    if (!skip(text, '.')) return std::nullopt;
    const auto knob = number(text);
    if (!knob || *knob < 0 || *knob >= CUDNN_KNOB_TYPE_COUNTS) return std::nullopt;
    if (!skip(text, '=')) return std::nullopt;
    const auto value = number(text);
    if (!value) return std::nullopt;
    choice.knobs.emplace_back(static_cast<cudnnBackendKnobType_t>(*knob), *value);
  }
  return choice;
}

// The engines of one heuristic, appended to `engines` where they are new and acceptable.
Result<> propose(const CudnnTarget& target, const CudnnProblem& problem,
                 const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode,
                 const CudnnLimits& limits, std::vector<std::string>& engines) {
  constexpr size_t kMost = 64;
  const CudnnApi& cudnn = target.cudnn();
  auto heuristic = DescriptorWriter(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "a heuristic")
                       .descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                       .choice(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
                       .descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.device())
                       .finish();
  if (!heuristic.ok()) {
    return heuristic.error().code == ErrorCode::kUnsupported
               ? Ok()
               : Result<>(std::move(heuristic).error());
  }
  KILN_ASSIGN_OR_RETURN(const auto configs,
                        descriptors_of(cudnn, heuristic->get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMost));
  for (const CudnnDescriptor& config : configs) {
    if (engines.size() >= limits.engines) break;
    KILN_ASSIGN_OR_RETURN(const auto engine,
                          descriptors_of(cudnn, config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1));
    if (engine.empty()) continue;
    KILN_ASSIGN_OR_RETURN(const NumericalNotes notes, notes_of(cudnn, engine[0]));
    if (!acceptable(notes) || (rounds_to_tf32(notes, problem) && !limits.allow_tf32)) continue;
    KILN_ASSIGN_OR_RETURN(const bool needs_more, needs_more_than_cudnn(cudnn, engine[0]));
    if (needs_more) continue;
    KILN_ASSIGN_OR_RETURN(std::string text, text_of(cudnn, config, engine[0]));
    if (std::find(engines.begin(), engines.end(), text) == engines.end()) {
      engines.push_back(std::move(text));
    }
  }
  return Ok();
}

Result<CudnnDescriptor> make_engine(const CudnnTarget& target, const CudnnDescriptor& graph,
                                    int64_t number) {
  return DescriptorWriter(target.cudnn(), CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine")
      .descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
      .number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, number)
      .descriptor(CUDNN_ATTR_ENGINE_DEVICEPROP, target.device())
      .finish();
}

Result<CudnnDescriptor> make_config(const CudnnApi& cudnn, const CudnnDescriptor& engine,
                                    const EngineChoice& choice) {
  std::vector<CudnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& [type, value] : choice.knobs) {
    KILN_ASSIGN_OR_RETURN(CudnnDescriptor knob,
                          DescriptorWriter(cudnn, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob")
                              .choice(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type)
                              .number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
                              .finish());
    raw.push_back(knob.get());
    knobs.push_back(std::move(knob));
  }
  DescriptorWriter writer(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine's configuration");
  writer.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!raw.empty()) writer.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, raw);
  return writer.finish();
}

}  // namespace

Result<CudnnTarget> CudnnTarget::of_handle(const CudnnApi& cudnn, cudnnHandle_t handle) {
  KILN_ASSIGN_OR_RETURN(
      CudnnDescriptor device,
      DescriptorWriter(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a GPU's description")
          .handle(CUDNN_ATTR_DEVICEPROP_HANDLE, handle)
          .finish());
  return CudnnTarget(cudnn, std::move(device));
}

Result<CudnnTarget> CudnnTarget::of_description(const CudnnApi& cudnn, const std::string& json) {
  KILN_ASSIGN_OR_RETURN(
      CudnnDescriptor device,
      DescriptorWriter(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a GPU's description")
          .text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json)
          .finish());
  return CudnnTarget(cudnn, std::move(device));
}

Result<std::vector<std::string>> cudnn_engines(const CudnnTarget& target,
                                               const CudnnProblem& problem,
                                               const CudnnLimits& limits) {
  KILN_ASSIGN_OR_RETURN(const auto graph, make_operation_graph(target.cudnn(), problem));
  std::vector<std::string> engines;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    KILN_RETURN_IF_ERROR(propose(target, problem, graph.graph, mode, limits, engines));
  }
  return engines;
}

Result<CudnnPlan> make_cudnn_plan(const CudnnTarget& target, const CudnnProblem& problem,
                                  const std::string& engine) {
  const auto choice = parse_engine(engine);
  if (!choice) return unsupported("'" + engine + "' is no engine of cuDNN");
  KILN_ASSIGN_OR_RETURN(const auto graph, make_operation_graph(target.cudnn(), problem));
  KILN_ASSIGN_OR_RETURN(const CudnnDescriptor chosen,
                        make_engine(target, graph.graph, choice->engine));
  KILN_ASSIGN_OR_RETURN(const NumericalNotes notes, notes_of(target.cudnn(), chosen));
  KILN_ASSIGN_OR_RETURN(const CudnnDescriptor config, make_config(target.cudnn(), chosen, *choice));
  KILN_ASSIGN_OR_RETURN(
      const CudnnDescriptor plan,
      DescriptorWriter(target.cudnn(), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan")
          .descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
          .descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.device())
          .finish());
  KILN_ASSIGN_OR_RETURN(
      const int64_t workspace,
      plan.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, "asking a plan for its workspace"));
  CudnnPlan made;
  made.version = target.cudnn().get_version();
  made.workspace_bytes = static_cast<uint64_t>(std::max<int64_t>(workspace, 0));
  made.tf32 = rounds_to_tf32(notes, problem);
  KILN_ASSIGN_OR_RETURN(
      made.json, plan.get_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, "writing a plan"));
  return made;
}

}  // namespace kiln
