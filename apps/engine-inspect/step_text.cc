#include "apps/engine-inspect/step_text.h"

#include <algorithm>
#include <cstdio>

#include "formats/loop_ir/loop_kernel.h"
#include "formats/operation/operation.h"
#include "formats/report/quantity_text.h"

namespace kiln::inspect {
namespace {

using plan::BufferRef;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

const SharedBytes* blob(const plan::Plan& plan, uint32_t index) {
  return index < plan.blobs.size() ? &plan.blobs[index] : nullptr;
}

std::string text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool readable(const std::string& text) {
  constexpr size_t kLongest = 60;
  return text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Attributes that are not words become their size.
Operation shortened(Operation operation) {
  for (auto& [key, value] : operation.attributes) {
    constexpr size_t kMostNumbers = 16;
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && !readable(*text)) value = "<" + std::to_string(text->size()) + " bytes>";
    const auto* numbers = std::get_if<std::vector<int64_t>>(&value);
    if (numbers != nullptr && numbers->size() > kMostNumbers) {
      value = "<" + std::to_string(numbers->size()) + " numbers>";
    }
  }
  return operation;
}

std::string extents_text(const std::array<uint32_t, 3>& extents) {
  return std::to_string(extents[0]) + "x" + std::to_string(extents[1]) + "x" +
         std::to_string(extents[2]);
}

std::string launch_text(const plan::KernelLaunch& launch) {
  std::string text =
      launch.entry + "<<<" + extents_text(launch.grid) + ", " + extents_text(launch.block);
  if (launch.shared_bytes > 0) text += ", " + std::to_string(launch.shared_bytes) + " B shared";
  const size_t maps = launch.tensor_maps.size();
  if (maps > 0) text += ", " + std::to_string(maps) + (maps == 1 ? " tensor map" : " tensor maps");
  return text + ">>>" + (launch.programmatic ? " programmatic" : "");
}

// Null where the step has no operation or the blob does not exist.
const SharedBytes* operation_blob(const plan::Plan& plan, const plan::StepAction& action) {
  if (const auto* step = std::get_if<plan::HostOperation>(&action)) {
    return blob(plan, step->operation);
  }
  if (const auto* step = std::get_if<plan::Matmul>(&action)) return blob(plan, step->operation);
  const auto* step = std::get_if<plan::CudnnGraph>(&action);
  return step == nullptr ? nullptr : blob(plan, step->operation);
}

// A loop step's kernel, indented; "" for any other step.
std::string kernel_text(const plan::Plan& plan, const plan::StepAction& action) {
  const auto* host = std::get_if<plan::HostOperation>(&action);
  const SharedBytes* bytes = host == nullptr ? nullptr : blob(plan, host->operation);
  if (bytes == nullptr) return "";
  const auto operation = decode_operation(bytes->bytes);
  if (!operation.ok() || operation->name != "loop") return "";
  const std::string encoded = operation->get_string("kernel", "");
  const auto kernel = loop::decode_loop_kernel(std::as_bytes(std::span(encoded)));
  if (!kernel.ok()) return "";
  std::string text, line;
  for (char c : loop::to_text(*kernel)) {
    line += c;
    if (c != '\n') continue;
    text += "            " + line;
    line.clear();
  }
  return text + (line.empty() ? "" : "            " + line + "\n");
}

std::string operands_text(const plan::Plan& plan, const std::vector<plan::Operand>& operands) {
  std::string text;
  for (const plan::Operand& operand : operands) {
    text += (text.empty() ? "" : ", ") + buffer_name(plan, operand.buffer) + " " +
            to_string(operand.type);
  }
  return text;
}

std::string call_text(const plan::Plan& plan, const auto& call) {
  std::string text = operands_text(plan, call.inputs) + " -> " + operands_text(plan, call.outputs);
  if (call.workspace.space != BufferRef::Space::kNone) {
    text += ", workspace " + report::bytes_text(call.workspace.bytes) + " " +
            buffer_name(plan, call.workspace);
  }
  return text;
}

std::string data_text(const plan::Plan& plan, const plan::StepAction& action) {
  const auto name = [&](const BufferRef& ref) { return buffer_name(plan, ref); };
  return std::visit(
      Overloaded{[&](const plan::HostOperation& s) { return call_text(plan, s); },
                 [&](const plan::PluginCall& s) { return call_text(plan, s); },
                 [&](const plan::KernelLaunch& s) { return call_text(plan, s); },
                 [&](const plan::Matmul& s) { return call_text(plan, s); },
                 [&](const plan::CudnnGraph& s) { return call_text(plan, s); },
                 [&](const plan::Copy& s) {
                   return name(s.from) + " -> " + name(s.to) + ", " +
                          report::bytes_text(s.to.bytes);
                 },
                 [&](const plan::Branch& s) {
                   return "if " + name(s.condition) + ": the next " + std::to_string(s.then_steps) +
                          " steps, else the " + std::to_string(s.else_steps) + " after them";
                 },
                 [&](const plan::Repeat& s) {
                   std::string text = "the next " + std::to_string(s.body_steps) + " steps";
                   if (s.trip_count.space != BufferRef::Space::kNone) {
                     text += ", " + name(s.trip_count) + " times";
                   }
                   if (s.condition.space != BufferRef::Space::kNone) {
                     text += ", while " + name(s.condition);
                   }
                   return text;
                 }},
      action);
}

uint64_t nested_steps(const plan::StepAction& action) {
  if (const auto* branch = std::get_if<plan::Branch>(&action)) {
    return uint64_t{branch->then_steps} + branch->else_steps;
  }
  const auto* repeat = std::get_if<plan::Repeat>(&action);
  return repeat == nullptr ? 0 : repeat->body_steps;
}

}  // namespace

std::string region_name(const plan::ShapePoint& point, size_t step) {
  const uint32_t region = point.steps[step].region;
  return region < point.region_names.size() ? point.region_names[region] : "";
}

std::string space_name(BufferRef::Space space) {
  constexpr const char* kNames[] = {"none", "arena", "weights", "input", "output", "cache"};
  return kNames[static_cast<size_t>(space)];
}

std::string constant_name(const plan::Constant& constant) {
  return constant.name.empty() ? "weights@" + std::to_string(constant.offset) : constant.name;
}

std::string buffer_name(const plan::Plan& plan, const BufferRef& buffer) {
  using Space = BufferRef::Space;
  switch (buffer.space) {
    case Space::kInput:
      return plan.inputs[buffer.index].name;
    case Space::kOutput:
      return plan.outputs[buffer.index].name;
    case Space::kWeights:
      for (const plan::Constant& constant : plan.constants) {
        if (constant.offset == buffer.offset && constant.bytes >= buffer.bytes) {
          return constant_name(constant);
        }
      }
      return "weights@" + std::to_string(buffer.offset);
    case Space::kArena:
      return "@" + std::to_string(buffer.offset);
    default:
      return space_name(buffer.space) + "@" + std::to_string(buffer.offset);
  }
}

std::string type_text(const TensorType& type, int32_t batch_axis, int64_t batch) {
  const auto axis = static_cast<size_t>(batch_axis);
  if (batch <= 0 || batch_axis < 0 || axis >= type.shape.size()) return to_string(type);
  std::string text = std::string(to_string(type.dtype)) + "[";
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (i > 0) text += "x";
    const int64_t factor = type.shape[i] / batch;
    if (i != axis) {
      text += std::to_string(type.shape[i]);
    } else {
      text += factor == 1 ? "B" : std::to_string(factor) + "B";
    }
  }
  return text + "]";
}

std::string action_kind(const plan::StepAction& action) {
  constexpr const char* kKinds[] = {"host",   "plugin", "copy",   "branch",
                                    "repeat", "kernel", "matmul", "cudnn"};
  static_assert(std::size(kKinds) == std::variant_size_v<plan::StepAction>);
  return kKinds[action.index()];
}

std::string operation_text(const plan::Plan& plan, const plan::StepAction& action, bool full) {
  if (const auto* call = std::get_if<plan::PluginCall>(&action)) {
    const SharedBytes* attributes = blob(plan, call->attributes);
    return plan.plugins[call->plugin].name + (attributes != nullptr ? text_of(*attributes) : "");
  }
  if (const auto* launch = std::get_if<plan::KernelLaunch>(&action)) return launch_text(*launch);
  const SharedBytes* bytes = operation_blob(plan, action);
  if (bytes == nullptr) return "";
  const auto operation = decode_operation(bytes->bytes);
  if (!operation.ok()) return "<damaged: " + operation.error().message + ">";
  return to_text(full ? *operation : shortened(*operation));
}

std::string steps_text(const plan::Plan& plan, const plan::ShapePoint& point, bool explain) {
  std::string text = "\nsteps of point " + point.name + "\n";
  std::vector<size_t> ends;  // of the spans that hold the current step
  for (size_t i = 0; i < point.steps.size(); ++i) {
    std::erase_if(ends, [&](size_t end) { return i >= end; });
    const plan::StepAction& action = point.steps[i].action;
    char head[32];
    std::snprintf(head, sizeof head, "%5zu  ", i);
    text += head + std::string(2 * ends.size(), ' ') + action_kind(action) + " ";
    // A loop's kernel is printed below its line, in its own words.
    const std::string kernel = explain ? kernel_text(plan, action) : "";
    const std::string operation = operation_text(plan, action, explain && kernel.empty());
    text += operation + (operation.empty() ? "" : "  ") + data_text(plan, action);
    text += "  [" + region_name(point, i) + "]\n" + kernel;
    if (const uint64_t nested = nested_steps(action); nested > 0) {
      ends.push_back(i + 1 + static_cast<size_t>(nested));
    }
  }
  return text;
}

}  // namespace kiln::inspect
