#include "engine/request/bind_request.h"

#include <functional>
#include <string>

#include "engine/request/match_tensors.h"

namespace kiln {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string quoted(const char* kind, const plan::IoTensor& tensor) {
  return std::string(kind) + " '" + tensor.name + "'";
}

// The memory of a tensor whose type is right.
Result<> check_memory(const Tensor& tensor, const char* kind, const plan::IoTensor& io,
                      plan::Target target) {
  if (tensor.memory != MemoryKind::kHost && target == plan::Target::kHost) {
    return Error{ErrorCode::kUnsupported,
                 quoted(kind, io) + " is in device memory, the engine runs on the host"};
  }
  const int64_t bytes = tensor.type.bytes();
  if (bytes > 0 && tensor.data == nullptr) {
    return invalid(quoted(kind, io) + " has no data, expected " + std::to_string(bytes) + " bytes");
  }
  const auto alignment = static_cast<uintptr_t>(bits_of(tensor.type.dtype)) / 8;
  if (alignment > 1 && reinterpret_cast<uintptr_t>(tensor.data) % alignment != 0) {
    return invalid(quoted(kind, io) + ": data is not aligned to its element's " +
                   std::to_string(alignment) + " bytes");
  }
  return Ok();
}

bool share_bytes(const Tensor& a, const Tensor& b) {
  const auto end = [](const Tensor& tensor) {
    return static_cast<const std::byte*>(tensor.data) + tensor.type.bytes();
  };
  const std::less<const void*> before;  // a total order, also over unrelated addresses
  if (a.type.bytes() == 0 || b.type.bytes() == 0) return false;
  return before(a.data, end(b)) && before(b.data, end(a));
}

// Steps write outputs before they have read all inputs.
Result<> check_no_overlap(const plan::Plan& plan, std::span<const Tensor* const> inputs,
                          std::span<const Tensor* const> outputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (share_bytes(*outputs[o], *inputs[i])) {
        return invalid(quoted("output", plan.outputs[o]) + " overlaps " +
                       quoted("input", plan.inputs[i]));
      }
    }
    for (size_t other = 0; other < o; ++other) {
      if (share_bytes(*outputs[o], *outputs[other])) {
        return invalid(quoted("output", plan.outputs[o]) + " overlaps " +
                       quoted("output", plan.outputs[other]));
      }
    }
  }
  return Ok();
}

}  // namespace

Result<Request> bind_request(const LoadedEngine& engine, std::span<const Tensor> inputs,
                             std::span<const Tensor> outputs) {
  const plan::Plan& plan = engine.plan;
  KILN_ASSIGN_OR_RETURN(const auto in, match_tensors(inputs, plan.inputs, "input"));
  KILN_ASSIGN_OR_RETURN(const auto out, match_tensors(outputs, plan.outputs, "output"));
  Request request;
  KILN_ASSIGN_OR_RETURN(request.choice, choose_point(plan, engine.staging, in));
  for (size_t i = 0; i < in.size(); ++i) {
    KILN_RETURN_IF_ERROR(check_memory(*in[i], "input", plan.inputs[i], plan.origin.target));
    request.inputs.push_back(in[i]->data);
    request.input_memory.push_back(in[i]->memory);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorType expected = output_type(plan, request.choice, i);
    if (out[i]->type != expected) {
      return invalid(quoted("output", plan.outputs[i]) + " is " + to_string(out[i]->type) +
                     ", expected " + to_string(expected));
    }
    KILN_RETURN_IF_ERROR(check_memory(*out[i], "output", plan.outputs[i], plan.origin.target));
    request.outputs.push_back(out[i]->data);
    request.output_memory.push_back(out[i]->memory);
  }
  KILN_RETURN_IF_ERROR(check_no_overlap(plan, in, out));
  return request;
}

}  // namespace kiln
