#include "builder/driver/build_target.h"

#include "formats/version.h"

namespace kiln {

std::string ChosenTarget::environment() const {
  const DeviceInfo& d = device;
  if (d.target == plan::Target::kHost) {
    return "host; " + d.name + "; " + std::to_string(d.threads) + " threads; kiln " + kVersion;
  }
  return "cuda; " + d.name + "; driver " + std::to_string(d.driver_version) + "; cuda " +
         std::to_string(d.cuda_version) + "; cublaslt " + std::to_string(d.cublaslt_version) +
         "; cudnn " + std::to_string(d.cudnn_version) +
         (cuda && cuda->tools.allow_tf32 ? "; tf32" : "") + "; kiln " + kVersion + "; cold weights";
}

plan::Origin ChosenTarget::origin() const {
  plan::Origin origin;
  origin.kiln_version = kVersion;
  origin.target = device.target;
  origin.device = device.name;
  origin.compute_capability = device.compute_capability;
  origin.driver_version = device.driver_version;
  origin.cuda_version = device.cuda_version;
  origin.cublaslt_version = device.cublaslt_version;
  origin.cudnn_version = device.cudnn_version;
  return origin;
}

ReferenceOptions ChosenTarget::reference(std::span<const Plugin> plugins) const {
  ReferenceOptions options;
  options.plugins = plugins;
  if (cuda) options.accelerator = cuda->accelerator;
  return options;
}

Result<ChosenTarget> choose_target(BuildTarget target, Precision precision) {
  ChosenTarget chosen{host_device(), host_providers(), std::nullopt};
  if (target == BuildTarget::kHost) return chosen;
  auto cuda = open_cuda_target(0);
  if (!cuda.ok()) {
    if (target == BuildTarget::kAuto) return chosen;
    return std::move(cuda).error().context("--target cuda");
  }
  chosen.device = cuda->device;
  chosen.providers = cuda_providers();
  chosen.cuda = std::move(*cuda);
  chosen.cuda->tools.allow_tf32 = precision == Precision::kTf32;
  return chosen;
}

}  // namespace kiln
