#include "builder/tactics/cuda/cudnn_answers.h"

#include <charconv>

#include "engine/cuda/library_handle.h"

namespace kiln {
namespace {

using Values = DeviceAnswers::Values;

// What `say` makes of the library's target, as long as there is a GPU.
template <class Say>
DeviceAnswers::Ask on_gpu(const CudaTools& tools, Say say) {
  if (!tools.device) return nullptr;
  return [&tools, say]() -> Result<Values> {
    return tools.device->cudnn().use(
        [&](const cuda::CudnnApi& cudnn, cudnnHandle_t handle) -> Result<Values> {
          KILN_ASSIGN_OR_RETURN(const CudnnTarget target, CudnnTarget::of_handle(cudnn, handle));
          return say(target);
        });
  };
}

Values values_of(const CudnnPlan& plan) {
  return {plan.json, std::to_string(plan.workspace_bytes), std::to_string(plan.version),
          plan.tf32 ? "tf32" : ""};
}

bool read_number(const std::string& text, uint64_t& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

Result<CudnnPlan> plan_of(const Values& values) {
  CudnnPlan plan;
  const bool whole = values.size() == 4 && read_number(values[1], plan.workspace_bytes) &&
                     read_number(values[2], plan.version);
  if (!whole) return Error{ErrorCode::kUnsupported, "the plan in the timing cache is damaged"};
  plan.json = values[0];
  plan.tf32 = values[3] == "tf32";
  return plan;
}

}  // namespace

Result<std::vector<std::string>> cudnn_engines(const CudaTools& tools, const CudnnProblem& problem,
                                               const CudnnLimits& limits) {
  const std::string kind =
      "cudnn engines, " + std::to_string(limits.engines) + (limits.allow_tf32 ? ", tf32" : "");
  return tools.answers->get(
      hashed_question(kind, to_text(problem)),
      on_gpu(tools, [&](const CudnnTarget& t) { return cudnn_engines(t, problem, limits); }));
}

Result<CudnnPlan> make_cudnn_plan(const CudaTools& tools, const CudnnProblem& problem,
                                  const std::string& engine) {
  const auto ask = on_gpu(tools, [&](const CudnnTarget& target) -> Result<Values> {
    KILN_ASSIGN_OR_RETURN(const CudnnPlan plan, make_cudnn_plan(target, problem, engine));
    return values_of(plan);
  });
  KILN_ASSIGN_OR_RETURN(
      const Values values,
      tools.answers->get(hashed_question("cudnn plan, " + engine, to_text(problem)), ask));
  return plan_of(values);
}

}  // namespace kiln
