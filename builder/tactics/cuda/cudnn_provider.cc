#include "builder/tactics/cuda/cudnn_provider.h"

#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/cuda/cudnn_answers.h"
#include "builder/tactics/cuda/cudnn_attention.h"
#include "builder/tactics/cuda/cudnn_call.h"
#include "builder/tactics/cuda/cudnn_conv.h"
#include "builder/tactics/cuda/widen_channels.h"

namespace kiln {
namespace {

using Kind = ir::Region::Kind;

constexpr const char* kFused = "fused";
constexpr const char* kResidualFirst = "residual-first";
constexpr const char* kSplit = "split";
constexpr const char* kPadded = "padded";
constexpr const char* kFolded = "folded";
constexpr const char* kAttention = "attention";

// Engines tried for each form; few of the order as written where fast engines take the residual
// first.
constexpr size_t kEngines = 6;
constexpr size_t kSecondOrderEngines = 2;
constexpr size_t kAttentionEngines = 4;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// The anchor, with its bias where fast engines take that too: for groups and deconvolutions they
// do not.
Result<EpilogueChain> split_chain(const ir::Graph& body) {
  KILN_ASSIGN_OR_RETURN(EpilogueChain chain, match_anchor(body));
  const auto* conv = std::get_if<ir::Conv>(&body.node(chain.anchor).op);
  if (conv == nullptr || conv->groups > 1) chain.steps.clear();
  return chain;
}

bool is_wide(const std::string& form) { return form == kPadded || form == kFolded; }

Result<WideConv> wide_conv(const ir::Graph& body, const std::string& form) {
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_epilogue_chain(body));
  return form == kPadded ? pad_channels(body, chain) : fold_strides(body, chain);
}

// The problem of a form; its operands are inputs or constants of the body.
Result<ConvProblem> problem_of(const ir::Graph& body, const std::string& form) {
  if (form == kSplit) {
    KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, split_chain(body));
    KILN_RETURN_IF_ERROR([&]() -> Result<> {
      const auto rest = split_rest(body, chain);
      return rest.ok() ? Ok() : Result<>(rest.error());
    }());
    return anchor_problem(body, chain);
  }
  if (is_wide(form)) {
    KILN_ASSIGN_OR_RETURN(WideConv wide, wide_conv(body, form));
    return std::move(wide.conv);
  }
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_epilogue_chain(body));
  return fused_problem(
      body, chain,
      form == kResidualFirst ? EpilogueOrder::kResidualFirst : EpilogueOrder::kAsWritten);
}

// Adds the engines of a form to `tactics`; the reason where there are none.
std::string propose(const CudaTools& tools, const ir::Graph& body, const char* form,
                    const CudnnLimits& limits, std::vector<Tactic>& tactics) {
  const auto made = problem_of(body, form);
  if (!made.ok()) return made.error().message;
  const auto engines = cudnn_engines(tools, made->problem, limits);
  if (!engines.ok()) return engines.error().message;
  for (const std::string& engine : *engines) tactics.push_back({form + ("/" + engine)});
  return engines->empty() ? "cuDNN has no engine for it" : "";
}

// The call with its input buffers; the output is the caller's.
Result<LibraryCall> make_call(const CudaTools& tools, const ir::Graph& body,
                              const ConvProblem& made, const std::string& engine,
                              Lowered& lowered) {
  KILN_ASSIGN_OR_RETURN(const CudnnPlan plan, make_cudnn_plan(tools, made.problem, engine));
  std::vector<CudnnOperand> operands;
  for (const auto& input : made.inputs) operands.push_back({input.first});
  operands.push_back({made.output});
  LibraryCall call = cudnn_call(made.problem, plan, operands);
  for (const auto& input : made.inputs) {
    call.inputs.push_back(buffer_of(body, input.second, lowered));
  }
  return call;
}

Result<Lowered> lower_split(const CudaTools& tools, const ir::Graph& body,
                            const std::string& engine) {
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, split_chain(body));
  KILN_ASSIGN_OR_RETURN(const SplitRest rest, split_rest(body, chain));
  KILN_ASSIGN_OR_RETURN(const ConvProblem made, anchor_problem(body, chain));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(LibraryCall call, make_call(tools, body, made, engine, lowered));
  add_call_and_rest(std::move(call), body, rest, lowered);
  return lowered;
}

Result<Lowered> lower_fused(const CudaTools& tools, const ir::Graph& body, const std::string& form,
                            const std::string& engine) {
  KILN_ASSIGN_OR_RETURN(const ConvProblem made, problem_of(body, form));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(LibraryCall call, make_call(tools, body, made, engine, lowered));
  add_call(std::move(call), lowered);
  return lowered;
}

// A loop in front of the call makes its input; its weights are made here.
Result<Lowered> lower_wide(const TacticQuery& query, const std::string& form,
                           const std::string& engine) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(const WideConv made, wide_conv(body, form));
  const auto place_of = [&](int64_t number) {
    size_t i = 0;
    while (made.conv.inputs[i].first != number) ++i;
    return i;
  };
  const size_t x = place_of(made.x), w = place_of(made.w);
  KILN_ASSIGN_OR_RETURN(const HostTensor weights, known_operand(query, made.conv.inputs[w].second));
  KILN_ASSIGN_OR_RETURN(auto widened, run_reference(made.widen_weights, {&weights, 1}));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(LibraryCall call, make_call(*query.cuda, body, made.conv, engine, lowered));
  lowered.constants.push_back(std::move(widened[0]));
  call.inputs[w] = {LocalBuffer::Kind::kConstant,
                    static_cast<uint32_t>(lowered.constants.size() - 1)};
  const LocalBuffer wide{LocalBuffer::Kind::kTemporary, 0};
  lowered.temporaries.push_back(made.wide);
  lowered.steps.emplace_back(HostCall{
      Operation{"loop", {}}.set("kernel", loop::encode(made.widen)), {call.inputs[x]}, {wide}});
  call.inputs[x] = wide;
  add_call(std::move(call), lowered);
  return lowered;
}

Result<Lowered> lower_attention(const CudaTools& tools, const ir::Graph& body,
                                const std::string& engine) {
  KILN_ASSIGN_OR_RETURN(const AttentionProblem made, attention_problem(body));
  KILN_ASSIGN_OR_RETURN(const CudnnPlan plan, make_cudnn_plan(tools, made.problem, engine));
  std::vector<CudnnOperand> operands;
  for (const PlacedOperand& input : made.inputs) operands.push_back({input.number, input.offset});
  operands.push_back({made.output});
  LibraryCall call = cudnn_call(made.problem, plan, operands);
  Lowered lowered;
  for (const PlacedOperand& input : made.inputs) {
    call.inputs.push_back(buffer_of(body, input.value, lowered));
  }
  if (made.masked_rows) {
    add_call_and_zeros(std::move(call), body, *made.masked_rows, lowered);
  } else {
    add_call(std::move(call), lowered);
  }
  return lowered;
}

std::vector<Tactic> attention_candidates(const CudaTools& tools, const ir::Graph& body,
                                         std::string& refusal) {
  const auto made = attention_problem(body);
  if (!made.ok()) {
    refusal = made.error().message;
    return {};
  }
  const auto engines = cudnn_engines(tools, made->problem, {kAttentionEngines, false});
  std::vector<Tactic> tactics;
  if (!engines.ok()) {
    refusal = engines.error().message;
  } else {
    for (const std::string& engine : *engines) {
      tactics.push_back({kAttention + ("/" + engine)});
    }
    if (tactics.empty()) refusal = "cuDNN has no engine for it";
  }
  return tactics;
}

std::vector<Tactic> convolution_candidates(const CudaTools& tools, const ir::Graph& body,
                                           std::string& refusal) {
  const bool tf32 = tools.allow_tf32;
  std::vector<Tactic> tactics;
  propose(tools, body, kResidualFirst, {kEngines, tf32}, tactics);
  const size_t most = tactics.empty() ? kEngines : kSecondOrderEngines;
  const std::string why = propose(tools, body, kFused, {most, tf32}, tactics);
  const std::string why_split = propose(tools, body, kSplit, {kEngines, tf32}, tactics);
  propose(tools, body, kPadded, {kEngines, tf32}, tactics);
  propose(tools, body, kFolded, {kEngines, tf32}, tactics);
  if (tactics.empty()) refusal = "fused: " + why + "; split: " + why_split;
  return tactics;
}

}  // namespace

std::vector<Tactic> cudnn_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr) {
    refusal = "is for GPUs";
    return {};
  }
  const ir::Graph& body = *query.region.body;
  if (query.region.kind == Kind::kAttention) {
    return attention_candidates(*query.cuda, body, refusal);
  }
  if (query.region.kind == Kind::kConvolution) {
    return convolution_candidates(*query.cuda, body, refusal);
  }
  refusal = "covers convolutions and attention only";
  return {};
}

Result<Lowered> cudnn_lower(const TacticQuery& query, const Tactic& tactic) {
  if (query.cuda == nullptr) return refuse("is for GPUs");
  const size_t slash = tactic.key.find('/');
  if (slash == std::string::npos) return refuse("'" + tactic.key + "' is no tactic of cuDNN");
  const std::string form = tactic.key.substr(0, slash), engine = tactic.key.substr(slash + 1);
  const ir::Graph& body = *query.region.body;
  if (form == kAttention) return lower_attention(*query.cuda, body, engine);
  if (form == kSplit) return lower_split(*query.cuda, body, engine);
  if (is_wide(form)) return lower_wide(query, form, engine);
  return lower_fused(*query.cuda, body, form, engine);
}

}  // namespace kiln
