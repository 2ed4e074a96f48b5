// CudaContext: what the builder tries kernels with, timed runs and checked ones.
#include <algorithm>

#include "engine/context/write_check.h"
#include "engine/cuda/addresses.h"
#include "engine/cuda/cuda_context.h"
#include "engine/load/loaded_engine.h"
#include "engine/request/bind_request.h"

namespace kiln::cuda {
namespace {

constexpr uint64_t kWeightsAlignment = 256;

}  // namespace

template <class Put>
Result<double> CudaContext::time(int runs, const Put& put) {
  const Device& device = *shared_.device;
  const DriverApi& driver = device.driver();
  KILN_ASSIGN_OR_RETURN(const Event begin, create_event(shared_.device, true));
  KILN_ASSIGN_OR_RETURN(const Event end, create_event(shared_.device, true));
  KILN_RETURN_IF_ERROR(
      device.check(driver.event_record(begin.get(), stream_.get()), "cuEventRecord"));
  for (int i = 0; i < runs; ++i) KILN_RETURN_IF_ERROR(put());
  KILN_RETURN_IF_ERROR(
      device.check(driver.event_record(end.get(), stream_.get()), "cuEventRecord"));
  KILN_RETURN_IF_ERROR(device.check(driver.event_synchronize(end.get()), "the timed runs"));
  float milliseconds = 0;
  KILN_RETURN_IF_ERROR(device.check(
      driver.event_elapsed_time(&milliseconds, begin.get(), end.get()), "cuEventElapsedTime"));
  return 1000.0 * static_cast<double>(milliseconds) / runs;
}

Result<double> CudaContext::time_on_device(size_t point, int runs) {
  KILN_RETURN_IF_ERROR(check_lost());
  const CurrentDevice current(*shared_.device);
  const IoAddresses io = own_tensors(point);
  auto us = time(runs, [&] { return run_steps(point, io, stream_.get()); });
  if (!us) note_loss(us.error());
  return us;
}

Result<> CudaContext::prepare_trial(size_t point, int copies) {
  if (trial_.copies == copies && trial_.point == point) return Ok();
  const Device& device = *shared_.device;
  const CudaProgram& program = shared_.programs[point];
  if (program.segments.size() != 1 || program.segments[0].end != program.steps.size()) {
    return Error{ErrorCode::kUnsupported, "a step runs on the host"};
  }
  trial_ = {};
  const uint64_t bytes = shared_.weights_bytes;
  const auto count = static_cast<uint64_t>(copies);
  std::vector<CUdeviceptr> weights;
  // A run's end throws out of the cache what its beginning read.
  if (bytes > 2 * device.properties().l2_bytes) weights.assign(count, shared_.weights.get());
  const uint64_t apart = (bytes + kWeightsAlignment - 1) / kWeightsAlignment * kWeightsAlignment;
  if (weights.empty()) {
    KILN_ASSIGN_OR_RETURN(trial_.weights,
                          allocate(shared_.device, apart * count, "copies of the weights"));
  }
  for (uint64_t i = weights.size(); i < count; ++i) {
    weights.push_back(trial_.weights.get() + i * apart);
    if (bytes == 0) continue;
    KILN_RETURN_IF_ERROR(device.check(
        device.driver().memcpy_async(weights.back(), shared_.weights.get(), bytes, stream_.get()),
        "copy of the weights"));
  }
  KILN_ASSIGN_OR_RETURN(trial_.graph, capture(point, program.segments[0], weights));
  trial_.point = point;
  trial_.copies = copies;
  return Ok();
}

Result<double> CudaContext::time_with_cold_weights(size_t point, int copies, int runs) {
  KILN_RETURN_IF_ERROR(check_lost());
  const CurrentDevice current(*shared_.device);
  const Device& device = *shared_.device;
  const auto timed = [&]() -> Result<double> {
    KILN_RETURN_IF_ERROR(prepare_trial(point, copies));
    KILN_ASSIGN_OR_RETURN(
        const double us, time(runs, [&] {
          return device.check(device.driver().graph_launch(trial_.graph.exec.get(), stream_.get()),
                              "graph launch");
        }));
    return us / copies;
  };
  auto us = timed();
  if (!us) note_loss(us.error());
  return us;
}

Result<> CudaContext::fill_memory() {
  const Device& device = *shared_.device;
  if (shared_.context_bytes > 0) {
    KILN_RETURN_IF_ERROR(device.check(
        device.driver().memset_async(memory_.get(), static_cast<unsigned char>(kPoison),
                                     shared_.context_bytes, stream_.get()),
        "a fill"));
  }
  return device.check(device.driver().stream_synchronize(stream_.get()), "a fill");
}

Result<> CudaContext::run_checked(const LoadedEngine& engine, std::span<const Tensor> inputs,
                                  std::span<const Tensor> outputs) {
  KILN_RETURN_IF_ERROR(check_lost());
  const CurrentDevice current(*shared_.device);
  const Device& device = *shared_.device;
  const auto checked = [&]() -> Result<> {
    KILN_RETURN_IF_ERROR(fill_memory());
    KILN_RETURN_IF_ERROR(run_in(engine, inputs, outputs, stream_.get(), true));
    KILN_ASSIGN_OR_RETURN(const Request request, bind_request(engine, inputs, outputs));
    const size_t number = request.choice.point;
    const plan::ShapePoint& point = engine.plan.points[number];
    std::vector<WritableRange> ranges = arena_writes(point);
    const auto add = [&](const char* what, const std::vector<TensorType>& types,
                         const std::vector<uint64_t>& offsets) {
      for (size_t i = 0; i < types.size(); ++i) {
        ranges.push_back({offsets[i], offsets[i] + static_cast<uint64_t>(types[i].bytes()),
                          what + std::to_string(i)});
      }
    };
    add("input ", point.inputs, shared_.io[number].inputs);
    add("output ", point.outputs, shared_.io[number].outputs);
    return check_writes(
        std::move(ranges), shared_.context_bytes,
        [&](uint64_t offset, std::span<std::byte> to) -> Result<> {
          KILN_RETURN_IF_ERROR(device.check(
              device.driver().memcpy_async(address_of(to.data()), memory_.get() + offset, to.size(),
                                           stream_.get()),
              "copy of what lies between buffers"));
          return device.check(device.driver().stream_synchronize(stream_.get()),
                              "copy of what lies between buffers");
        });
  };
  auto done = checked();
  if (!done) note_loss(done.error());
  return done;
}

}  // namespace kiln::cuda
