// CudaContext: device memory, stream and graphs of one running request.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/context/context.h"
#include "engine/context/memory.h"
#include "engine/cuda/cuda_program.h"
#include "engine/cuda/io_buffers.h"
#include "engine/cuda/owned.h"
#include "engine/cuda/padding_graphs.h"
#include "engine/cuda/point_graphs.h"
#include "engine/request/bind_request.h"

namespace kiln::cuda {

// What contexts share; constant once loaded.
struct SharedState {
  std::shared_ptr<const Device> device;
  DeviceMemory weights;
  uint64_t weights_bytes = 0;
  std::vector<CudaProgram> programs;  // by shape point
  std::vector<IoLayout> io;           // by shape point
  uint64_t context_bytes = 0;         // the largest point's
  uint64_t scratch_bytes = 0;
};

class CudaContext : public Context {
 public:
  // Takes the memory, captures and instantiates a graph for every segment of every shape point.
  static Result<std::unique_ptr<Context>> create(const SharedState& shared,
                                                 const LoadedEngine& engine);

  Result<> run(const LoadedEngine& engine, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs, Stream stream) override;
  Result<double> time_on_device(size_t point, int runs) override;
  Result<RequestTimes> time_request(const LoadedEngine& engine, std::span<const Tensor> inputs,
                                    std::span<const Tensor> outputs) override;
  Result<double> time_with_cold_weights(size_t point, int copies, int runs) override;
  Result<> run_checked(const LoadedEngine& engine, std::span<const Tensor> inputs,
                       std::span<const Tensor> outputs) override;

 private:
  using Marks = std::array<Event, 4>;
  explicit CudaContext(const SharedState& shared) : shared_(shared) {}
  // On the tensors at `io`.
  Result<> run_steps(size_t point, const IoAddresses& io, CUstream stream);
  Result<> make_graphs(const LoadedEngine& engine);
  // A graph of the segment's steps, once for each copy of the weights, on the context's tensors.
  Result<SegmentGraph> capture(size_t point, const Segment& segment,
                               std::span<const CUdeviceptr> weights);
  Spaces spaces_of(const IoAddresses& io, CUdeviceptr weights) const;
  // The context's own tensors.
  IoAddresses own_tensors(size_t point) const;
  // The caller's tensors where the graphs take them, the context's for the others.
  IoAddresses place(const LoadedEngine& engine, const Request& request) const;
  bool is_here(const void* address) const;
  // Microseconds of one of `runs` calls of `put`, which puts work into the context's stream.
  template <class Put>
  Result<double> time(int runs, const Put& put);
  Result<> prepare_trial(size_t point, int copies);
  Result<> fill_memory();
  Result<> run_in(const LoadedEngine& engine, std::span<const Tensor> inputs,
                  std::span<const Tensor> outputs, CUstream stream, bool wait);
  // Between the caller's tensors and those at `io`, where they are not the same.
  Result<> copy_inputs(const LoadedEngine& engine, const Request& request, const IoAddresses& io,
                       CUstream stream);
  Result<> copy_outputs(const LoadedEngine& engine, const Request& request, const IoAddresses& io,
                        CUstream stream);
  Result<> put(const LoadedEngine& engine, const Request& request, CUstream stream,
               const Marks* marks);
  Result<RequestTimes> time_request_in(const LoadedEngine& engine, std::span<const Tensor> inputs,
                                       std::span<const Tensor> outputs);
  Result<> check_lost() const;
  void note_loss(const Error& error);

  const SharedState& shared_;
  const std::byte* host_weights_ = nullptr;  // for steps that run on the host
  DeviceMemory memory_;
  OwnedStream stream_;
  Event done_;                          // after the latest request
  std::vector<PointGraphs> graphs_;     // by point
  std::vector<PaddingGraphs> padding_;  // by point
  Memory scratch_;                      // of steps that run on the host
  // What the latest call of time_with_cold_weights() made.
  struct Trial {
    size_t point = 0;
    int copies = 0;
    DeviceMemory weights;
    SegmentGraph graph;
  };
  Trial trial_;
  std::string lost_;  // why the device no longer serves this context; empty while it does
};

}  // namespace kiln::cuda
