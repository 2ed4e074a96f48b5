#include "engine/plugin_host/plugin_tensors.h"
#include "engine/plugin_library.h"

namespace kiln {
namespace {

kiln_bytes bytes_of(std::string_view text) { return {text.data(), text.size()}; }

uint32_t count_of(const auto& items) { return static_cast<uint32_t>(items.size()); }

PluginKernel kernel_of(const kiln_kernel_candidate& from) {
  PluginKernel kernel{from.name != nullptr ? from.name : "", from.source, from.entry};
  for (int axis = 0; axis < 3; ++axis) {
    kernel.grid[axis] = from.grid[axis];
    kernel.block[axis] = from.block[axis];
  }
  kernel.shared_bytes = from.shared_bytes;
  kernel.workspace_bytes = from.workspace_bytes;
  kernel.programmatic_launch = from.programmatic_launch != 0;
  return kernel;
}

}  // namespace

bool Plugin::has_host_code() const { return abi_->run != nullptr; }

Result<std::vector<TensorType>> Plugin::infer(std::string_view attributes,
                                              std::span<const TensorType> inputs,
                                              size_t output_count) const {
  const std::string what = "plugin '" + name_ + "': infer";
  auto in = plugin_tensors(inputs);
  if (!in) return std::move(in).error().context(what);
  std::vector<kiln_tensor> out(output_count, kiln_tensor{});
  PluginMessages messages;
  const kiln_status status = abi_->build->infer(messages.host(), bytes_of(attributes), in->data(),
                                                count_of(*in), out.data(), count_of(out));
  if (status != 0) return messages.error(what, status);
  std::vector<TensorType> types;
  for (const kiln_tensor& tensor : out) {
    auto type = type_of(tensor);
    if (!type) {
      return std::move(type).error().context(what + ": output " + std::to_string(types.size()));
    }
    types.push_back(*std::move(type));
  }
  return types;
}

Result<std::vector<PluginKernel>> Plugin::kernels(std::string_view attributes,
                                                  std::span<const TensorType> inputs,
                                                  std::span<const TensorType> outputs,
                                                  uint32_t compute_capability) const {
  std::vector<PluginKernel> kernels;
  const kiln_plugin_build& build = *abi_->build;
  if (build.candidate_count == nullptr) return kernels;
  const std::string what = "plugin '" + name_ + "': candidate ";
  KILN_ASSIGN_OR_RETURN(const auto in, plugin_tensors(inputs));
  KILN_ASSIGN_OR_RETURN(const auto out, plugin_tensors(outputs));
  const uint32_t count = build.candidate_count(bytes_of(attributes), in.data(), count_of(in),
                                               out.data(), count_of(out), compute_capability);
  for (uint32_t i = 0; i < count; ++i) {
    kiln_kernel_candidate candidate = {};
    candidate.struct_size = sizeof(candidate);
    PluginMessages messages;
    const kiln_status status =
        build.candidate(messages.host(), i, bytes_of(attributes), in.data(), count_of(in),
                        out.data(), count_of(out), compute_capability, &candidate);
    if (status != 0) return messages.error(what + std::to_string(i), status);
    if (candidate.source == nullptr || candidate.entry == nullptr) {
      return Error{ErrorCode::kCorruptData, what + std::to_string(i) + " has no source or entry"};
    }
    kernels.push_back(kernel_of(candidate));
  }
  return kernels;
}

bool Plugin::rows_independent(std::string_view attributes) const {
  const auto answer = abi_->build->rows_independent;
  return answer != nullptr && answer(bytes_of(attributes)) == 1;
}

struct PluginInstance::State {
  std::shared_ptr<const void> library;  // outlives the plugin's own state
  const kiln_plugin_run* run = nullptr;
  void* plugin_state = nullptr;
  bool created = false;
  std::string name;
  std::vector<kiln_tensor> inputs, outputs;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (created && run->destroy != nullptr) run->destroy(plugin_state);
  }
};

Result<PluginInstance> Plugin::instantiate(std::string_view attributes,
                                           std::span<const TensorType> inputs,
                                           std::span<const TensorType> outputs) const {
  if (abi_->run == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "plugin '" + name_ + "' has no host code; it offers kernels for a GPU only"};
  }
  auto state = std::make_shared<PluginInstance::State>();
  state->library = library_;
  state->run = abi_->run;
  state->name = name_;
  KILN_ASSIGN_OR_RETURN(state->inputs, plugin_tensors(inputs));
  KILN_ASSIGN_OR_RETURN(state->outputs, plugin_tensors(outputs));
  PluginMessages messages;
  const kiln_status status = abi_->run->create(
      messages.host(), bytes_of(attributes), state->inputs.data(), count_of(state->inputs),
      state->outputs.data(), count_of(state->outputs), &state->plugin_state);
  if (status != 0) return messages.error("plugin '" + name_ + "': create", status);
  state->created = true;
  PluginInstance instance;
  if (abi_->run->workspace_bytes != nullptr) {
    instance.workspace_bytes_ = abi_->run->workspace_bytes(state->plugin_state);
  }
  instance.state_ = std::move(state);
  return instance;
}

Result<> PluginInstance::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                             void* workspace, Stream stream) const {
  const State& state = *state_;
  if (inputs.size() != state.inputs.size() || outputs.size() != state.outputs.size()) {
    return Error{ErrorCode::kInternal, "plugin '" + state.name + "': called with " +
                                           std::to_string(inputs.size()) + " inputs and " +
                                           std::to_string(outputs.size()) + " outputs"};
  }
  std::vector<kiln_tensor> in = state.inputs, out = state.outputs;
  for (size_t i = 0; i < in.size(); ++i) in[i].data = const_cast<void*>(inputs[i]);
  for (size_t i = 0; i < out.size(); ++i) out[i].data = outputs[i];
  PluginMessages messages;
  const kiln_status status =
      state.run->enqueue(state.plugin_state, messages.host(), in.data(), count_of(in), out.data(),
                         count_of(out), workspace, stream.handle);
  if (status != 0) return messages.error("plugin '" + state.name + "'", status);
  return Ok();
}

}  // namespace kiln
