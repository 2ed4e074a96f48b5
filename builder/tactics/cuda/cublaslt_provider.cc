#include "builder/tactics/cuda/cublaslt_provider.h"

#include <algorithm>

#include "builder/clean/constant_value.h"
#include "builder/tactics/cuda/call_and_rest.h"
#include "builder/tactics/cuda/cublaslt_epilogue.h"
#include "builder/tactics/cuda/cublaslt_matmul.h"

namespace kiln {
namespace {

constexpr const char* kFused = "fused";
constexpr const char* kSplit = "split";
constexpr std::string_view kFast = "-fast";  // behind either: sums of fewer bits, of 8-bit operands
constexpr size_t kAlgorithms = 8;            // of each form

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// The region's input, or what it holds in the dtype that the call reads.
Result<LocalBuffer> operand_buffer(const TacticQuery& query, ir::ValueId value, DType wanted,
                                   Lowered& lowered) {
  const auto inputs = query.region.body->inputs();
  const auto number =
      static_cast<size_t>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
  const TensorType& type = query.inputs[number];
  if (type.dtype == wanted) {
    return LocalBuffer{LocalBuffer::Kind::kInput, static_cast<uint32_t>(number)};
  }
  const auto& constant = query.constants[number];
  if (!constant) {
    return refuse("the bias is " + to_string(type) + ", cuBLASLt adds " +
                  std::string(to_string(wanted)));
  }
  KILN_ASSIGN_OR_RETURN(SharedBytes bytes, clean::convert(type, *constant, wanted));
  lowered.constants.push_back({{wanted, type.shape}, std::move(bytes)});
  return LocalBuffer{LocalBuffer::Kind::kConstant,
                     static_cast<uint32_t>(lowered.constants.size() - 1)};
}

// The call with its input buffers; the output is the caller's.
Result<LibraryCall> make_call(const TacticQuery& query, const FusedMatmul& fused,
                              std::string_view algorithm, Lowered& lowered) {
  KILN_ASSIGN_OR_RETURN(LibraryCall call, matmul_call(fused.problem, algorithm));
  for (size_t i = 0; i < fused.operands.size(); ++i) {
    const DType wanted = i < 2 ? fused.problem.operand_dtype : cuda::addend_dtype(fused.problem);
    KILN_ASSIGN_OR_RETURN(call.inputs.emplace_back(),
                          operand_buffer(query, fused.operands[i], wanted, lowered));
  }
  if (cuda::quantises(fused.problem)) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&fused.scale);
    lowered.constants.push_back(
        {{DType::kF32, {}}, SharedBytes::take({bytes, bytes + sizeof fused.scale})});
    call.inputs.push_back(
        {LocalBuffer::Kind::kConstant, static_cast<uint32_t>(lowered.constants.size() - 1)});
  }
  return call;
}

// Whether the tensor cores have sums of fewer bits for it, which are faster.
bool sums_fast(const cuda::MatmulProblem& problem) {
  return problem.compute == cuda::MatmulProblem::Compute::kF32 &&
         problem.operand_dtype == DType::kF8E4M3FN;
}

Result<> set_sums(FusedMatmul& product, bool fast) {
  if (!fast) return Ok();
  if (!sums_fast(product.problem)) return refuse("only 8-bit operands have faster sums");
  product.problem.compute = cuda::MatmulProblem::Compute::kFastF32;
  return Ok();
}

Result<Lowered> lower_fused(const TacticQuery& query, std::string_view algorithm, bool fast) {
  KILN_ASSIGN_OR_RETURN(FusedMatmul fused,
                        fuse_matmul_epilogue(*query.region.body, query.cuda->allow_tf32));
  KILN_RETURN_IF_ERROR(set_sums(fused, fast));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(LibraryCall call, make_call(query, fused, algorithm, lowered));
  add_call(std::move(call), lowered);
  return lowered;
}

struct Split {
  FusedMatmul product;
  SplitRest rest;
};

Result<Split> split(const ir::Graph& body, bool allow_tf32) {
  Split split;
  KILN_ASSIGN_OR_RETURN(split.product, match_matmul(body, allow_tf32));
  KILN_ASSIGN_OR_RETURN(const EpilogueChain chain, match_anchor(body));
  KILN_ASSIGN_OR_RETURN(split.rest, split_rest(body, chain));
  return split;
}

Result<Lowered> lower_split(const TacticQuery& query, std::string_view algorithm, bool fast) {
  const ir::Graph& body = *query.region.body;
  KILN_ASSIGN_OR_RETURN(Split parts, split(body, query.cuda->allow_tf32));
  KILN_RETURN_IF_ERROR(set_sums(parts.product, fast));
  Lowered lowered;
  KILN_ASSIGN_OR_RETURN(LibraryCall call, make_call(query, parts.product, algorithm, lowered));
  add_call_and_rest(std::move(call), body, parts.rest, lowered);
  return lowered;
}

// Adds the algorithms of a form to `tactics`; the reason where there are none.
std::string propose_as(const TacticQuery& query, const std::string& form,
                       const cuda::MatmulProblem& problem, std::vector<Tactic>& tactics) {
  const auto choices = cublaslt_choices(*query.cuda, problem, kAlgorithms);
  if (!choices.ok()) return choices.error().message;
  for (const MatmulChoice& choice : *choices) tactics.push_back({form + "/" + choice.key});
  return "";
}

std::string propose(const TacticQuery& query, const std::string& form,
                    Result<cuda::MatmulProblem> problem, std::vector<Tactic>& tactics) {
  if (!problem.ok()) return problem.error().message;
  std::string refusal = propose_as(query, form, *problem, tactics);
  if (!sums_fast(*problem)) return refusal;
  problem->compute = cuda::MatmulProblem::Compute::kFastF32;
  const std::string fast = propose_as(query, form + std::string(kFast), *problem, tactics);
  return refusal.empty() || fast.empty() ? "" : refusal;
}

Result<cuda::MatmulProblem> fused_problem(const TacticQuery& query) {
  KILN_ASSIGN_OR_RETURN(const FusedMatmul fused,
                        fuse_matmul_epilogue(*query.region.body, query.cuda->allow_tf32));
  // A bias that is known only at run time cannot be converted.
  Lowered scratch;
  for (size_t i = 2; i < fused.operands.size(); ++i) {
    KILN_RETURN_IF_ERROR([&]() -> Result<> {
      const auto buffer =
          operand_buffer(query, fused.operands[i], cuda::addend_dtype(fused.problem), scratch);
      return buffer.ok() ? Ok() : Result<>(buffer.error());
    }());
  }
  return fused.problem;
}

Result<cuda::MatmulProblem> split_problem(const TacticQuery& query) {
  KILN_ASSIGN_OR_RETURN(const Split parts, split(*query.region.body, query.cuda->allow_tf32));
  return parts.product.problem;
}

}  // namespace

std::vector<Tactic> cublaslt_candidates(const TacticQuery& query, std::string& refusal) {
  if (query.cuda == nullptr || query.region.kind != ir::Region::Kind::kContraction) {
    refusal = query.cuda == nullptr ? "is for GPUs" : "covers contractions only";
    return {};
  }
  std::vector<Tactic> tactics;
  const std::string fused = propose(query, kFused, fused_problem(query), tactics);
  const std::string split = propose(query, kSplit, split_problem(query), tactics);
  if (tactics.empty()) refusal = "fused: " + fused + "; split: " + split;
  return tactics;
}

Result<Lowered> cublaslt_lower(const TacticQuery& query, const Tactic& tactic) {
  if (query.cuda == nullptr) return refuse("is for GPUs");
  const size_t slash = tactic.key.find('/');
  std::string form = tactic.key.substr(0, slash);
  const bool fast = form.ends_with(kFast);
  if (fast) form.resize(form.size() - kFast.size());
  if (slash == std::string::npos || (form != kFused && form != kSplit)) {
    return refuse("'" + tactic.key + "' is no tactic of cuBLASLt");
  }
  const std::string algorithm = tactic.key.substr(slash + 1);
  return form == kFused ? lower_fused(query, algorithm, fast) : lower_split(query, algorithm, fast);
}

}  // namespace kiln
