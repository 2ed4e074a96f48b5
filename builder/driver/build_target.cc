#include "builder/driver/build_target.h"

#include <algorithm>

#include "builder/device/device_fields.h"
#include "builder/device/recorded_device.h"
#include "formats/version.h"

namespace kiln {
namespace {

// "sm_90"
bool is_capability(std::string_view target) {
  constexpr std::string_view kPrefix = "sm_", kDigits = "0123456789";
  return target.starts_with(kPrefix) && target.size() > kPrefix.size() &&
         target.find_first_not_of(kDigits, kPrefix.size()) == std::string_view::npos;
}

// A GPU that is elsewhere.
Result<CudaTarget> recorded_target(const BuildOptions& options, const TimingCache& cache) {
  if (options.timing_cache.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string(is_capability(options.target_device)
                                 ? "names a GPU that is elsewhere: "
                                 : "is none of auto, host, cuda and sm_NN; if it is the name of a "
                                   "GPU that is elsewhere, ") +
                     "give the timing cache of a build there with --timing-cache"};
  }
  auto device =
      recorded_device(cache, options.target_device, options.precision == Precision::kTf32);
  if (!device.ok()) {
    return std::move(device).error().context("timing cache '" + options.timing_cache.string() +
                                             "'");
  }
  return describe_cuda_target(*device);
}

Error no_such_tactic(const std::string& name, std::span<const TacticProvider> providers) {
  std::string known;
  for (const TacticProvider& provider : providers) {
    known += known.empty() ? "" : ", ";
    known += provider.name;
  }
  return {ErrorCode::kInvalidArgument, "cannot disable tactic '" + name +
                                           "': the target has none of that name; expected one of " +
                                           known};
}

Result<std::vector<TacticProvider>> enabled(std::span<const TacticProvider> providers,
                                            const std::vector<std::string>& disabled) {
  std::vector<TacticProvider> result(providers.begin(), providers.end());
  for (const std::string& name : disabled) {
    const auto named = [&](const TacticProvider& provider) { return provider.name == name; };
    if (std::none_of(providers.begin(), providers.end(), named)) {
      return no_such_tactic(name, providers);
    }
    std::erase_if(result, named);
  }
  return result;
}

}  // namespace

std::string ChosenTarget::environment() const {
  return environment_of(device, cuda && cuda->tools.allow_tf32);
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

Result<ChosenTarget> choose_target(const BuildOptions& options, const TimingCache& cache) {
  ChosenTarget chosen{host_device(), {}, std::nullopt};
  std::span<const TacticProvider> providers = host_providers();
  if (options.target != BuildTarget::kHost) {
    const bool elsewhere = !options.target_device.empty();
    auto cuda = elsewhere ? recorded_target(options, cache) : open_cuda_target(0);
    if (!cuda.ok() && options.target != BuildTarget::kAuto) {
      return std::move(cuda).error().context("--target " +
                                             (elsewhere ? options.target_device : "cuda"));
    }
    if (cuda.ok()) {
      chosen.device = cuda->device;
      providers = cuda_providers();
      chosen.cuda = std::move(*cuda);
      chosen.cuda->tools.answers = chosen.answers;
    }
  }
  KILN_ASSIGN_OR_RETURN(chosen.providers, enabled(providers, options.disabled_tactics));
  if (chosen.cuda) chosen.cuda->tools.allow_tf32 = options.precision == Precision::kTf32;
  const auto known = cache.environments.find(chosen.environment());
  if (known != cache.environments.end()) *chosen.answers = DeviceAnswers(known->second.answers);
  return chosen;
}

}  // namespace kiln
