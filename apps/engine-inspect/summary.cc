#include "apps/engine-inspect/summary.h"

#include <algorithm>
#include <cstdio>

#include "apps/engine-inspect/step_text.h"
#include "formats/report/quantity_text.h"

namespace kiln::inspect {
namespace {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string device_text(const plan::Origin& origin) {
  std::string text = origin.target == plan::Target::kHost ? "host" : "cuda";
  if (!origin.device.empty()) text += " (" + origin.device + ")";
  const std::pair<const char*, uint32_t> versions[] = {
      {"compute capability", origin.compute_capability},
      {"driver", origin.driver_version},
      {"CUDA", origin.cuda_version},
      {"cuBLASLt", origin.cublaslt_version},
      {"cuDNN", origin.cudnn_version}};
  for (const auto& [name, version] : versions) {
    if (version != 0) text += std::string(", ") + name + " " + std::to_string(version);
  }
  return text;
}

size_t longest_name(const std::vector<plan::IoTensor>& tensors) {
  size_t longest = 0;
  for (const plan::IoTensor& tensor : tensors) longest = std::max(longest, tensor.name.size());
  return longest;
}

std::string io_text(const char* title, const std::vector<plan::IoTensor>& tensors,
                    const std::vector<TensorType>& types, int64_t batch) {
  std::string text = std::string(title) + "\n";
  const size_t width = longest_name(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    text += "  " + padded(tensors[i].name, width) + "  " +
            type_text(types[i], tensors[i].batch_axis, batch) + "\n";
  }
  return text;
}

// The types of a point that the tensors' list, which shows the first point's, does not tell.
std::string own_types(const plan::Plan& plan, const plan::ShapePoint& point) {
  const plan::ShapePoint& first = plan.points.front();
  std::string text;
  const auto compare = [&](const auto& tensors, const auto& types, const auto& others) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string own = type_text(types[i], tensors[i].batch_axis, point.batch);
      if (own == type_text(others[i], tensors[i].batch_axis, first.batch)) continue;
      text += (text.empty() ? "  " : ", ") + tensors[i].name + " " + own;
    }
  };
  compare(plan.inputs, point.inputs, first.inputs);
  compare(plan.outputs, point.outputs, first.outputs);
  for (const plan::FixedInput& fixed : point.fixed_inputs) {
    text += (text.empty() ? "  " : ", ") + plan.inputs[fixed.input].name + " fixed";
  }
  return text;
}

}  // namespace

std::string header_text(const std::filesystem::path& file, const plan::Plan& plan) {
  const plan::Origin& origin = plan.origin;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  std::string text = file.string() + (error ? "" : ": " + report::bytes_text(bytes)) + "\n";
  text += "  model      " + origin.model_name + " (hash " +
          (origin.model_hash == 0 ? "unknown" : report::hash_text(origin.model_hash)) + ")\n";
  text += "  built by   kiln " + origin.kiln_version + "\n";
  text += "  target     " + device_text(origin) + "\n";
  text += "  precision  " + origin.precision + "\n";
  text += std::string("  verified   ") +
          (origin.verified ? "yes, at every shape point"
                           : "NO: refused until engine-build --verify-engine has compared it") +
          "\n";
  text += "  padding    " +
          (plan.batch_padding
               ? std::string("a request takes the smallest bucket that holds it")
               : "no" + (plan.batch_padding_reason.empty() ? std::string()
                                                           : ": " + plan.batch_padding_reason)) +
          "\n";
  if (origin.world_size > 1) {
    text += "  rank       " + std::to_string(origin.rank) + " of " +
            std::to_string(origin.world_size) + "\n";
  }
  for (const plan::PluginReference& plugin : plan.plugins) {
    text += "  plugin     " + plugin.name + " version " + plugin.version + "\n";
  }
  return text;
}

std::string tensors_text(const plan::Plan& plan) {
  if (plan.points.empty()) return "";
  const plan::ShapePoint& first = plan.points.front();
  return io_text("\ninputs", plan.inputs, first.inputs, first.batch) +
         io_text("outputs", plan.outputs, first.outputs, first.batch);
}

std::string points_text(const plan::Plan& plan, const std::string& only) {
  std::string text = "\nshape points\n";
  text += "  name             batch  regions  steps       arena  over lower bound\n";
  for (const plan::ShapePoint& point : plan.points) {
    if (!only.empty() && point.name != only) continue;
    char line[120];
    const std::string batch = point.batch > 0 ? std::to_string(point.batch) : "none";
    std::snprintf(line, sizeof line, " %5s %8zu %6zu %11s", batch.c_str(),
                  point.region_names.size(), point.steps.size(),
                  report::bytes_text(point.arena_bytes).c_str());
    text += "  " + padded(point.name, 16) + line;
    if (point.arena_lower_bound_bytes > 0) {
      std::snprintf(line, sizeof line, "  %.3f",
                    static_cast<double>(point.arena_bytes) /
                        static_cast<double>(point.arena_lower_bound_bytes));
      text += line;
    }
    text += own_types(plan, point) + "\n";
  }
  return text;
}

std::string constants_text(const plan::Plan& plan, size_t most) {
  std::vector<const plan::Constant*> order;
  for (const plan::Constant& constant : plan.constants) order.push_back(&constant);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  std::string text = "\nconstants: " + std::to_string(order.size()) + ", weights " +
                     report::bytes_text(plan.weights.size()) + "\n";
  const size_t shown = most == 0 ? order.size() : std::min(most, order.size());
  for (size_t i = 0; i < shown; ++i) {
    char size[24];
    std::snprintf(size, sizeof size, "  %10s  ", report::bytes_text(order[i]->bytes).c_str());
    text += size + constant_name(*order[i]) + "\n";
  }
  if (shown < order.size()) {
    text += "  ... and " + std::to_string(order.size() - shown) + " smaller (--constants)\n";
  }
  return text;
}

}  // namespace kiln::inspect
