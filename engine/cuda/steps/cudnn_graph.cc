#include "engine/cuda/steps/cudnn_graph.h"

#include <set>

#include "engine/cuda/library_handle.h"
#include "engine/steps/call_rules.h"

namespace kiln::cuda {
namespace {

Error corrupt(std::string why) {
  return {ErrorCode::kCorruptData, "cuDNN graph: " + std::move(why)};
}

std::vector<plan::Operand> operands_of(const plan::CudnnGraph& step) {
  std::vector<plan::Operand> operands = step.inputs;
  operands.insert(operands.end(), step.outputs.begin(), step.outputs.end());
  return operands;
}

// The pointers to what the plan reads and writes; scalars are read from `call`, which must outlive
// the execution.
Result<CudnnDescriptor> make_variant_pack(const CudnnApi& cudnn, const CudnnCall& call,
                                          std::span<void* const> operands, void* workspace) {
  std::vector<int64_t> uids = call.uids;
  std::vector<void*> pointers(operands.begin(), operands.end());
  for (size_t i = 0; i < call.scalars.size(); ++i) {
    uids.push_back(call.scalar_uids[i]);
    pointers.push_back(const_cast<float*>(&call.scalars[i]));
  }
  DescriptorWriter writer(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "cuDNN's arguments");
  writer.pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
      .ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
      .pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span(&workspace, 1));
  return writer.finish();
}

}  // namespace

Result<CudnnCall> decode_cudnn_call(const Operation& operation, const plan::CudnnGraph& step) {
  if (operation.name != kCudnnGraphOperation) {
    return corrupt("found operation '" + operation.name + "', expected '" + kCudnnGraphOperation +
                   "'");
  }
  CudnnCall call;
  call.plan = operation.get_string("plan", "");
  call.uids = operation.get_ints("uids");
  call.offsets = operation.get_ints("offsets");
  call.scalar_uids = operation.get_ints("scalar_uids");
  call.version = static_cast<uint64_t>(operation.get_int("version", 0));
  for (double scalar : operation.get_doubles("scalars")) {
    call.scalars.push_back(static_cast<float>(scalar));
  }
  if (call.plan.empty()) return corrupt("it has no plan");
  const auto bytes = operation.get_ints("bytes");
  const auto operands = operands_of(step);
  if (call.uids.size() != operands.size() || call.offsets.size() != operands.size() ||
      bytes.size() != operands.size()) {
    return corrupt("it has " + std::to_string(call.uids.size()) + " ids, " +
                   std::to_string(call.offsets.size()) + " offsets and " +
                   std::to_string(bytes.size()) + " lengths for " +
                   std::to_string(operands.size()) + " operands");
  }
  if (call.scalar_uids.size() != call.scalars.size()) {
    return corrupt("it has " + std::to_string(call.scalar_uids.size()) + " ids for " +
                   std::to_string(call.scalars.size()) + " scalars");
  }
  std::set<int64_t> seen(call.uids.begin(), call.uids.end());
  seen.insert(call.scalar_uids.begin(), call.scalar_uids.end());
  if (seen.size() != call.uids.size() + call.scalar_uids.size()) return corrupt("an id repeats");
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t whole = operands[i].type.bytes();
    const bool inside = call.offsets[i] >= 0 && call.offsets[i] <= whole && bytes[i] >= 0 &&
                        bytes[i] <= whole - call.offsets[i];
    if (inside) continue;
    return corrupt("operand " + std::to_string(i) + " has " + std::to_string(whole) +
                   " bytes, its plan takes " + std::to_string(bytes[i]) + " from " +
                   std::to_string(call.offsets[i]));
  }
  return call;
}

Result<CudnnDescriptor> load_cudnn_plan(const CudnnApi& cudnn, cudnnHandle_t handle,
                                        const CudnnCall& call, const plan::CudnnGraph& step) {
  const uint64_t version = cudnn.get_version();
  if (version != call.version) {
    return Error{ErrorCode::kVersionMismatch,
                 "cuDNN graph: made with cuDNN " + std::to_string(call.version) + ", found " +
                     std::to_string(version) + "; install that version or build the engine again"};
  }
  auto plan = DescriptorWriter(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a stored plan")
                  .handle(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
                  .text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, call.plan)
                  .finish();
  if (!plan.ok() && plan.error().code == ErrorCode::kUnsupported) {
    // The status that cuDNN has for a plan whose kernel it would compile.
    if (plan.error().message.find("RUNTIME_PREREQUISITE_MISSING") != std::string::npos) {
      return Error{ErrorCode::kUnsupported, "cuDNN graph: cuDNN loads this plan only with NVRTC (" +
                                                plan.error().message +
                                                "); put libnvrtc.so on the loader's path"};
    }
    return corrupt(plan.error().message);
  }
  if (!plan.ok()) return plan;
  KILN_ASSIGN_OR_RETURN(const int64_t needed,
                        plan->get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                      "asking a cuDNN plan for its workspace"));
  if (needed < 0) return corrupt("its plan asks for a negative workspace");
  KILN_RETURN_IF_ERROR(check_workspace(step.workspace, static_cast<uint64_t>(needed)));
  return plan;
}

Result<PreparedCudnnGraph> prepare_step(const plan::CudnnGraph& step,
                                        const DeviceResources& resources) {
  KILN_ASSIGN_OR_RETURN(const Operation operation,
                        decode_operation(resources.plan.blobs[step.operation].bytes));
  CudnnHandle& shared = resources.device->cudnn();
  PreparedCudnnGraph prepared{&step, &shared, {}, {}};
  KILN_ASSIGN_OR_RETURN(prepared.call, decode_cudnn_call(operation, step));
  KILN_RETURN_IF_ERROR(
      check_overlaps(step.inputs, step.outputs, step.workspace, [](size_t) { return false; }));
  const auto load = [&](const CudnnApi& cudnn, cudnnHandle_t handle) {
    return load_cudnn_plan(cudnn, handle, prepared.call, step);
  };
  KILN_ASSIGN_OR_RETURN(prepared.plan, shared.use(load));
  prepared.call.plan.clear();  // it may hold a kernel, and is not needed again
  return prepared;
}

Result<> enqueue_step(const PreparedCudnnGraph& step, const Spaces& spaces, CUstream) {
  std::vector<void*> operands;
  const auto add = [&](void* start) {
    operands.push_back(static_cast<std::byte*>(start) + step.call.offsets[operands.size()]);
  };
  for (const plan::Operand& operand : step.step->inputs) {
    add(const_cast<void*>(spaces.read(operand.buffer)));
  }
  for (const plan::Operand& operand : step.step->outputs) add(spaces.write(operand.buffer));
  return step.cudnn->use([&](const CudnnApi& cudnn, cudnnHandle_t handle) -> Result<> {
    KILN_ASSIGN_OR_RETURN(
        const CudnnDescriptor arguments,
        make_variant_pack(cudnn, step.call, operands, spaces.write(step.step->workspace)));
    return check(cudnn, cudnn.execute(handle, step.plan.get(), arguments.get()),
                 "executing a cuDNN plan");
  });
}

}  // namespace kiln::cuda
