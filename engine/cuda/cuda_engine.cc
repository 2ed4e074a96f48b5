#include "engine/cuda/cuda_engine.h"

#include <algorithm>
#include <string>

#include "engine/cuda/addresses.h"
#include "engine/cuda/cuda_context.h"
#include "engine/load/loaded_engine.h"

namespace kiln::cuda {
namespace {

std::string capability(uint32_t number) {
  return std::to_string(number / 10) + "." + std::to_string(number % 10);
}

// Cubins run on their own compute capability alone. The libraries check their own plans.
Result<> check_device(const plan::Origin& origin, const DeviceProperties& device) {
  if (origin.compute_capability != device.compute_capability) {
    return Error{ErrorCode::kVersionMismatch,
                 "was built for '" + origin.device + "' (compute capability " +
                     capability(origin.compute_capability) + "), GPU " +
                     std::to_string(device.ordinal) + " is '" + device.name + "' (" +
                     capability(device.compute_capability) +
                     "); build the engine again on this GPU"};
  }
  if (device.driver_version / 1000 < origin.cuda_version / 1000) {
    return Error{ErrorCode::kVersionMismatch,
                 "was built with CUDA " + std::to_string(origin.cuda_version / 1000) + "." +
                     std::to_string(origin.cuda_version % 1000 / 10) + ", the driver serves CUDA " +
                     std::to_string(device.driver_version / 1000) + "." +
                     std::to_string(device.driver_version % 1000 / 10) +
                     "; install a newer driver, or build with an older CUDA Toolkit"};
  }
  return Ok();
}

class CudaEngine : public TargetEngine {
 public:
  CudaEngine(const LoadedEngine& engine, std::shared_ptr<const Device> device)
      : plan_(engine.plan), modules_(device) {
    shared_.device = std::move(device);
  }

  Result<> load(const StepResources& host_resources, bool programmatic_launch) {
    const CurrentDevice current(*shared_.device);
    KILN_RETURN_IF_ERROR(upload_weights());
    const DeviceResources resources{plan_, shared_.device, modules_, programmatic_launch};
    for (const plan::ShapePoint& point : plan_.points) {
      KILN_ASSIGN_OR_RETURN(CudaProgram program, prepare_program(point, resources, host_resources));
      shared_.scratch_bytes = std::max(shared_.scratch_bytes, program.scratch_bytes);
      shared_.programs.push_back(std::move(program));
      shared_.io.push_back(lay_out_io(point));
      shared_.context_bytes = std::max(shared_.context_bytes, shared_.io.back().end);
    }
    return Ok();
  }

  Result<std::unique_ptr<Context>> create_context(const LoadedEngine& engine) const override {
    return CudaContext::create(shared_, engine);
  }
  uint64_t context_bytes() const override { return shared_.context_bytes; }
  uint64_t shared_bytes() const override { return plan_.weights.size(); }
  std::string device_address() const override { return shared_.device->properties().pci_address; }

  Result<std::shared_ptr<std::byte>> allocate(MemoryKind memory, uint64_t bytes) const override {
    if (memory == MemoryKind::kHost) {
      KILN_ASSIGN_OR_RETURN(HostMemory block, allocate_host(shared_.device, bytes));
      const auto owner = std::make_shared<HostMemory>(std::move(block));
      return std::shared_ptr<std::byte>(owner, static_cast<std::byte*>(owner->get()));
    }
    KILN_ASSIGN_OR_RETURN(DeviceMemory block,
                          cuda::allocate(shared_.device, bytes, "a caller's tensor"));
    const auto owner = std::make_shared<DeviceMemory>(std::move(block));
    return std::shared_ptr<std::byte>(owner, static_cast<std::byte*>(pointer_to(owner->get())));
  }

  Result<> copy(void* to, const void* from, uint64_t bytes) const override {
    if (bytes == 0) return Ok();
    const Device& device = *shared_.device;
    const CurrentDevice current(device);
    KILN_ASSIGN_OR_RETURN(const OwnedStream stream, create_stream(shared_.device));
    const std::string what = "copy of " + std::to_string(bytes) + " bytes";
    KILN_RETURN_IF_ERROR(device.check(
        device.driver().memcpy_async(address_of(to), address_of(from), bytes, stream.get()), what));
    return device.check(device.driver().stream_synchronize(stream.get()), what);
  }

 private:
  Result<> upload_weights() {
    const uint64_t bytes = plan_.weights.size();
    shared_.weights_bytes = bytes;
    if (bytes == 0) return Ok();
    KILN_ASSIGN_OR_RETURN(shared_.weights, cuda::allocate(shared_.device, bytes, "the weights"));
    auto copied = copy(pointer_to(shared_.weights.get()), plan_.weights.data(), bytes);
    if (copied) return Ok();
    return std::move(copied).error().context("the weights");
  }

  const plan::Plan& plan_;
  ModuleSet modules_;
  SharedState shared_;  // last: its programs use what is above
};

}  // namespace

Result<std::unique_ptr<const TargetEngine>> load_cuda_engine(const LoadedEngine& engine,
                                                             const StepResources& resources,
                                                             const LoadOptions& options) {
  auto libraries = options.cuda_libraries ? options.cuda_libraries : Libraries::system();
  auto device = Device::open(options.device, std::move(libraries));
  if (!device) {
    return std::move(device).error().context("was built for target cuda, device '" +
                                             engine.plan.origin.device + "'");
  }
  KILN_RETURN_IF_ERROR(check_device(engine.plan.origin, (*device)->properties()));
  auto cuda = std::make_unique<CudaEngine>(engine, *std::move(device));
  KILN_RETURN_IF_ERROR(cuda->load(resources, options.programmatic_launch));
  return std::unique_ptr<const TargetEngine>(std::move(cuda));
}

}  // namespace kiln::cuda
