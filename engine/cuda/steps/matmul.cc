#include "engine/cuda/steps/matmul.h"

#include "engine/cuda/library_handle.h"
#include "engine/cuda/matmul/descriptors.h"
#include "engine/steps/call_rules.h"

namespace kiln::cuda {
namespace {

// The buffers are where the algorithm may assume them: spaces start on 256 bytes.
Result<> check_alignment(const plan::Matmul& step, const MatmulProblem& problem) {
  const uint64_t alignment = alignment_of(problem);
  const auto check_operand = [&](const plan::Operand& operand, const std::string& name) {
    if (operand.buffer.offset % alignment == 0) return Ok();
    return Result<>(Error{ErrorCode::kCorruptData, "matmul: offset of " + name + " is " +
                                                       std::to_string(operand.buffer.offset) +
                                                       ", expected a multiple of " +
                                                       std::to_string(alignment)});
  };
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    KILN_RETURN_IF_ERROR(check_operand(step.inputs[i], "input " + std::to_string(i)));
  }
  return check_operand(step.outputs[0], "the output");
}

// What cuBLASLt has to say to an algorithm that another machine chose.
Result<cublasLtMatmulAlgo_t> load_algorithm(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                            const MatmulCall& call, uint64_t workspace_bytes) {
  const auto refused = [&](const std::string& why) {
    const uint64_t found = cublaslt.get_version(), chosen = call.algorithm.version;
    return Error{found == chosen ? ErrorCode::kCorruptData : ErrorCode::kVersionMismatch,
                 "matmul: algorithm '" + to_string(call.algorithm) + "', chosen with cuBLASLt " +
                     std::to_string(chosen) + ", is refused by cuBLASLt " + std::to_string(found) +
                     ": " + why + "; install the first version or build the engine again"};
  };
  auto algorithm = make_algorithm(cublaslt, handle, call.problem, call.algorithm);
  if (!algorithm.ok()) {
    if (algorithm.error().code != ErrorCode::kUnsupported) return algorithm;
    return refused(algorithm.error().message);
  }
  MatmulDescriptors described;
  KILN_RETURN_IF_ERROR(describe(cublaslt, call.problem, {}, described));
  cublasLtMatmulHeuristicResult_t result = {};
  const auto checked =
      check(cublaslt,
            cublaslt.algo_check(handle, &described.operation, &described.b, &described.a,
                                &described.c, &described.d, &*algorithm, &result),
            "checking it");
  if (!checked.ok()) {
    if (checked.error().code != ErrorCode::kUnsupported) return checked.error();
    return refused(checked.error().message);
  }
  if (result.workspaceSize > workspace_bytes) {
    return refused("it needs a workspace of " + std::to_string(result.workspaceSize) +
                   " bytes, the step has " + std::to_string(workspace_bytes));
  }
  return algorithm;
}

class Enqueue {
 public:
  Enqueue(const CublasLtApi& cublaslt, cublasLtHandle_t handle, const PreparedMatmul& step,
          const Spaces& spaces)
      : cublaslt_(cublaslt), handle_(handle), step_(step) {
    const plan::Matmul& plan = *step.step;
    a_ = read(spaces, plan.inputs[0]);
    b_ = read(spaces, plan.inputs[1]);
    if (step.problem.bias) addends_.bias = read(spaces, plan.inputs[2]);
    if (quantises(step.problem)) addends_.scale = read(spaces, plan.inputs.back());
    d_ = static_cast<std::byte*>(spaces.write(plan.outputs[0].buffer));
    if (step.problem.residual) residual_ = read(spaces, plan.inputs.back());
    workspace_ = spaces.write(plan.workspace);
  }

  Result<> run(CUstream stream) const {
    MatmulDescriptors described;
    KILN_RETURN_IF_ERROR(describe(cublaslt_, step_.problem, addends_, described));
    const int64_t calls = calls_of(step_.problem);
    for (int64_t call = 0; call < calls; ++call) {
      KILN_RETURN_IF_ERROR(run_call(call, described, stream));
    }
    return Ok();
  }

 private:
  static const std::byte* read(const Spaces& spaces, const plan::Operand& operand) {
    return static_cast<const std::byte*>(spaces.read(operand.buffer));
  }

  int64_t offset(const MatrixView& view, DType dtype, int64_t call) const {
    return call_offset(step_.problem, view, call) * (bits_of(dtype) / 8);
  }

  Result<> run_call(int64_t call, const MatmulDescriptors& described, CUstream stream) const {
    const MatmulProblem& p = step_.problem;
    const int64_t a = offset(p.a, p.operand_dtype, call), b = offset(p.b, p.operand_dtype, call);
    const int64_t d = offset(p.d, p.result_dtype, call);
    const bool wide = p.compute == MatmulProblem::Compute::kF64;
    const double alpha = p.alpha, beta = p.residual ? 1 : 0;
    const auto alpha_f32 = static_cast<float>(alpha), beta_f32 = static_cast<float>(beta);
    // Without a residual it does not read c, which must be none where d is of codes.
    const std::byte* const c = p.residual ? residual_ + d : quantises(p) ? nullptr : d_ + d;
    return check(
        cublaslt_,
        cublaslt_.matmul(handle_, const_cast<cublasLtMatmulDescOpaque_t*>(&described.operation),
                         wide ? static_cast<const void*>(&alpha) : &alpha_f32, b_ + b,
                         layout(described.b), a_ + a, layout(described.a),
                         wide ? static_cast<const void*>(&beta) : &beta_f32, c, layout(described.c),
                         d_ + d, layout(described.d), &step_.algorithm, workspace_,
                         step_.step->workspace.bytes, stream),
        "cublasLtMatmul");
  }

  // cuBLASLt's interface does not know const, but does not write to descriptors.
  static cublasLtMatrixLayout_t layout(const cublasLtMatrixLayoutOpaque_t& described) {
    return const_cast<cublasLtMatrixLayoutOpaque_t*>(&described);
  }

  const CublasLtApi& cublaslt_;
  cublasLtHandle_t handle_;
  const PreparedMatmul& step_;
  const std::byte *a_ = nullptr, *b_ = nullptr, *residual_ = nullptr;
  MatmulAddends addends_;
  std::byte* d_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace

Result<PreparedMatmul> prepare_step(const plan::Matmul& step, const DeviceResources& resources) {
  KILN_ASSIGN_OR_RETURN(const Operation operation,
                        decode_operation(resources.plan.blobs[step.operation].bytes));
  KILN_ASSIGN_OR_RETURN(const MatmulCall call, matmul_call_from(operation));
  KILN_RETURN_IF_ERROR(check(call.problem, types_of(step.inputs), types_of(step.outputs)));
  KILN_RETURN_IF_ERROR(check_alignment(step, call.problem));
  KILN_RETURN_IF_ERROR(check_workspace(step.workspace, call.algorithm.workspace_bytes));
  const auto in_place = [&](size_t i) {
    return call.problem.residual && i + 1 == step.inputs.size();
  };
  KILN_RETURN_IF_ERROR(check_overlaps(step.inputs, step.outputs, step.workspace, in_place));
  PreparedMatmul prepared{&step, resources.device, call.problem, {}};
  const auto load = [&](const CublasLtApi& cublaslt, cublasLtHandle_t handle) {
    return load_algorithm(cublaslt, handle, call, step.workspace.bytes);
  };
  KILN_ASSIGN_OR_RETURN(prepared.algorithm, resources.device->cublaslt().use(load));
  return prepared;
}

Result<> enqueue_step(const PreparedMatmul& step, const Spaces& spaces, CUstream stream) {
  return step.device->cublaslt().use([&](const CublasLtApi& cublaslt, cublasLtHandle_t handle) {
    return Enqueue(cublaslt, handle, step, spaces).run(stream);
  });
}

}  // namespace kiln::cuda
