#include "engine/cuda/cuda_context.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "engine/cuda/addresses.h"
#include "engine/cuda/capture_graph.h"
#include "engine/cuda/host_step.h"
#include "engine/load/loaded_engine.h"

namespace kiln::cuda {
namespace {

// Walks a program: graphs for segments, host steps and control flow in between.
class Walk {
 public:
  Walk(const CudaProgram& program, const PointGraphs& graphs, const HostStepContext& context)
      : program_(program), graphs_(graphs), context_(context) {}

  Result<> run_span(size_t first, size_t count) {
    for (size_t i = first; i < first + count;) {
      const uint32_t segment = program_.segment_at[i];
      if (segment != CudaProgram::kNone) {
        KILN_RETURN_IF_ERROR(launch(segment));
        i = program_.segments[segment].end;
        continue;
      }
      KILN_ASSIGN_OR_RETURN(i, run_host(i));
    }
    return Ok();
  }

 private:
  Result<> launch(uint32_t segment) {
    auto launched = context_.device.check(
        context_.device.driver().graph_launch(graphs_.graph(segment), context_.stream),
        "graph launch");
    if (launched) return Ok();
    return std::move(launched).error().context(
        step_name(*program_.point, program_.segments[segment].first));
  }

  // Returns the number of the next step.
  Result<size_t> run_host(size_t i) {
    const PreparedStep& step = program_.steps[i];
    if (const auto* branch = std::get_if<const plan::Branch*>(&step)) return run(**branch, i + 1);
    if (const auto* repeat = std::get_if<const plan::Repeat*>(&step)) return run(**repeat, i + 1);
    auto ran = std::visit(
        [&](const auto& host) -> Result<> {
          if constexpr (requires { run_host_step(host, context_); }) {
            return run_host_step(host, context_);
          } else {
            return Error{ErrorCode::kInternal, "a device step outside of every segment"};
          }
        },
        step);
    if (!ran) return std::move(ran).error().context(step_name(*program_.point, i));
    return i + 1;
  }

  Result<bool> is_true(const plan::BufferRef& condition) {
    unsigned char value = 0;
    KILN_RETURN_IF_ERROR(read_back(condition, &value, context_));
    return value != 0;
  }

  Result<size_t> run(const plan::Branch& branch, size_t first) {
    const size_t else_first = first + branch.then_steps;
    KILN_ASSIGN_OR_RETURN(const bool condition, is_true(branch.condition));
    KILN_RETURN_IF_ERROR(condition ? run_span(first, branch.then_steps)
                                   : run_span(else_first, branch.else_steps));
    return else_first + branch.else_steps;
  }

  Result<size_t> run(const plan::Repeat& repeat, size_t first) {
    using Space = plan::BufferRef::Space;
    int64_t rounds = std::numeric_limits<int64_t>::max();
    if (repeat.trip_count.space != Space::kNone) {
      KILN_RETURN_IF_ERROR(read_back(repeat.trip_count, &rounds, context_));
    }
    for (int64_t round = 0; round < rounds; ++round) {
      if (repeat.condition.space != Space::kNone) {
        KILN_ASSIGN_OR_RETURN(const bool goes_on, is_true(repeat.condition));
        if (!goes_on) break;
      }
      if (repeat.iteration.space != Space::kNone) {
        KILN_RETURN_IF_ERROR(write_forward(&round, repeat.iteration, context_));
      }
      KILN_RETURN_IF_ERROR(run_span(first, repeat.body_steps));
    }
    return first + repeat.body_steps;
  }

  const CudaProgram& program_;
  const PointGraphs& graphs_;
  const HostStepContext& context_;
};

bool is_padded(const Choice& choice, const StagedTensor* staged) {
  return choice.padded && staged != nullptr && staged->staged;
}

// How a tensor's rows are laid out; one that does not grow is one block of one row.
RowCopy row_copy(const Device& device, CUstream stream, const Choice& choice, int64_t batch,
                 const StagedTensor* staged, const TensorType& type) {
  if (!is_padded(choice, staged)) {
    return {device, stream, 1, 1, {1, static_cast<uint64_t>(type.bytes())}};
  }
  return {device, stream, choice.rows, batch, staged->rows};
}

}  // namespace

Result<std::unique_ptr<Context>> CudaContext::create(const SharedState& shared,
                                                     const LoadedEngine& engine) {
  const CurrentDevice current(*shared.device);
  auto context = std::unique_ptr<CudaContext>(new CudaContext(shared));
  context->host_weights_ = engine.plan.weights.data();
  KILN_ASSIGN_OR_RETURN(context->memory_,
                        allocate(shared.device, shared.context_bytes, "a context"));
  KILN_ASSIGN_OR_RETURN(context->stream_, create_stream(shared.device));
  KILN_ASSIGN_OR_RETURN(context->done_, create_event(shared.device, false));
  KILN_ASSIGN_OR_RETURN(context->scratch_, Memory::allocate(shared.scratch_bytes));
  KILN_RETURN_IF_ERROR(context->make_graphs(engine));
  return std::unique_ptr<Context>(std::move(context));
}

Spaces CudaContext::spaces_of(const IoAddresses& io, CUdeviceptr weights) const {
  return {pointer_to(memory_.get()), pointer_to(weights), io.inputs, io.outputs};
}

IoAddresses CudaContext::own_tensors(size_t point) const {
  IoAddresses io;
  for (uint64_t at : shared_.io[point].inputs) io.inputs.push_back(pointer_to(memory_.get() + at));
  for (uint64_t at : shared_.io[point].outputs) {
    io.outputs.push_back(pointer_to(memory_.get() + at));
  }
  return io;
}

// What the caller calls device memory may be another GPU's.
bool CudaContext::is_here(const void* address) const {
  const Device& device = *shared_.device;
  int ordinal = -1;
  return device.driver().pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                               address_of(address)) == CUDA_SUCCESS &&
         ordinal == device.properties().ordinal;
}

IoAddresses CudaContext::place(const LoadedEngine& engine, const Request& request) const {
  const size_t point = request.choice.point;
  const PointGraphs& graphs = graphs_[point];
  const StagingLayout& staging = engine.staging[point];
  IoAddresses io = own_tensors(point);
  const auto may_stay = [&](const void* address, MemoryKind memory, const StagedTensor* staged) {
    return memory == MemoryKind::kDevice && address_of(address) % kIoAlignment == 0 &&
           !is_padded(request.choice, staged);
  };
  for (size_t i = 0; i < io.inputs.size(); ++i) {
    const StagedTensor* staged = staging.possible ? &staging.inputs[i] : nullptr;
    const void* at = request.inputs[i];
    if (graphs.takes_input(i) && may_stay(at, request.input_memory[i], staged) &&
        (graphs.is_bound_input(i, at) || is_here(at))) {
      io.inputs[i] = at;
    }
  }
  for (size_t i = 0; i < io.outputs.size(); ++i) {
    const StagedTensor* staged = staging.possible ? &staging.outputs[i] : nullptr;
    void* at = request.outputs[i];
    if (graphs.takes_output(i) && may_stay(at, request.output_memory[i], staged) &&
        (graphs.is_bound_output(i, at) || is_here(at))) {
      io.outputs[i] = at;
    }
  }
  return io;
}

Result<> CudaContext::make_graphs(const LoadedEngine& engine) {
  const Device& device = *shared_.device;
  for (size_t point = 0; point < shared_.programs.size(); ++point) {
    std::vector<SegmentGraph> graphs;
    for (const Segment& segment : shared_.programs[point].segments) {
      const CUdeviceptr weights = shared_.weights.get();
      KILN_ASSIGN_OR_RETURN(SegmentGraph graph, capture(point, segment, std::span(&weights, 1)));
      graphs.push_back(std::move(graph));
    }
    const IoAddresses own = own_tensors(point);
    graphs_.emplace_back(shared_.programs[point], std::move(graphs), own);
    KILN_ASSIGN_OR_RETURN(PaddingGraphs padding,
                          PaddingGraphs::create(shared_.device, engine.plan.points[point],
                                                engine.staging[point], own, stream_.get()));
    padding_.push_back(std::move(padding));
  }
  return device.check(device.driver().stream_synchronize(stream_.get()),
                      "waiting for the graphs' upload");
}

Result<SegmentGraph> CudaContext::capture(size_t point, const Segment& segment,
                                          std::span<const CUdeviceptr> weights) {
  const CudaProgram& program = shared_.programs[point];
  const IoAddresses io = own_tensors(point);
  std::vector<IoLaunch> launches;
  KILN_ASSIGN_OR_RETURN(
      CapturedGraph graph,
      capture_graph(shared_.device, " of '" + program.point->name + "'", stream_.get(),
                    [&](CUstream stream) -> Result<> {
                      for (CUdeviceptr at : weights) {
                        KILN_ASSIGN_OR_RETURN(
                            launches, enqueue_segment(program, segment, spaces_of(io, at), stream));
                      }
                      return Ok();
                    }));
  return SegmentGraph{std::move(graph.captured), std::move(graph.exec), std::move(launches)};
}

// After such an error every further call on the device fails: its memory is gone.
void CudaContext::note_loss(const Error& error) {
  if (error.code == ErrorCode::kDevice) lost_ = error.message;
}

Result<> CudaContext::run(const LoadedEngine& engine, std::span<const Tensor> inputs,
                          std::span<const Tensor> outputs, Stream stream) {
  KILN_RETURN_IF_ERROR(check_lost());
  const CurrentDevice current(*shared_.device);
  const bool own = stream.handle == nullptr;
  auto ran = run_in(engine, inputs, outputs,
                    own ? stream_.get() : static_cast<CUstream>(stream.handle), own);
  if (!ran) note_loss(ran.error());
  return ran;
}

Result<> CudaContext::check_lost() const {
  if (lost_.empty()) return Ok();
  return Error{ErrorCode::kDevice, "the context is lost since an earlier failure (" + lost_ +
                                       "); load the engine again, in a new process if the device "
                                       "stays unusable"};
}

Result<> CudaContext::run_steps(size_t point, const IoAddresses& io, CUstream stream) {
  const CudaProgram& program = shared_.programs[point];
  const Spaces spaces = spaces_of(io, shared_.weights.get());
  KILN_RETURN_IF_ERROR(graphs_[point].bind(spaces, io));
  const HostStepContext host{*shared_.device, stream, spaces, host_weights_, scratch_.data()};
  return Walk(program, graphs_[point], host).run_span(0, program.steps.size());
}

Result<> CudaContext::copy_inputs(const LoadedEngine& engine, const Request& request,
                                  const IoAddresses& io, CUstream stream) {
  const Device& device = *shared_.device;
  const Choice& choice = request.choice;
  const plan::ShapePoint& point = engine.plan.points[choice.point];
  const StagingLayout& staging = engine.staging[choice.point];
  // Calls `copy` with every input that is not where the steps take it.
  const auto each = [&](const auto& copy) -> Result<> {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      if (io.inputs[i] == request.inputs[i]) continue;
      const StagedTensor* staged = staging.possible ? &staging.inputs[i] : nullptr;
      KILN_RETURN_IF_ERROR(
          copy(request.inputs[i], address_of(io.inputs[i]), is_padded(choice, staged),
               row_copy(device, stream, choice, point.batch, staged, point.inputs[i])));
    }
    return Ok();
  };
  if (choice.padded) {
    KILN_RETURN_IF_ERROR(
        each([](const void* from, CUdeviceptr to, bool padded, const RowCopy& copy) -> Result<> {
          return padded ? copy_last_row(from, to, copy) : Ok();
        }));
    const CUgraphExec repeat = padding_[choice.point].graph(point.batch - choice.rows);
    KILN_RETURN_IF_ERROR(
        device.check(device.driver().graph_launch(repeat, stream), "padding of a request"));
  }
  return each([](const void* from, CUdeviceptr to, bool padded, const RowCopy& copy) {
    return copy_first_rows(from, to, copy.rows - (padded ? 1 : 0), copy);
  });
}

Result<> CudaContext::copy_outputs(const LoadedEngine& engine, const Request& request,
                                   const IoAddresses& io, CUstream stream) {
  const size_t point = request.choice.point;
  const plan::ShapePoint& shape = engine.plan.points[point];
  const StagingLayout& staging = engine.staging[point];
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    if (io.outputs[i] == request.outputs[i]) continue;
    const StagedTensor* staged = staging.possible ? &staging.outputs[i] : nullptr;
    KILN_RETURN_IF_ERROR(copy_trimmed(
        address_of(io.outputs[i]), request.outputs[i],
        row_copy(*shared_.device, stream, request.choice, shape.batch, staged, shape.outputs[i])));
  }
  return Ok();
}

// Puts a request into the stream; `marks`, where there are any, before the inputs, the steps, the
// outputs, and behind them.
Result<> CudaContext::put(const LoadedEngine& engine, const Request& request, CUstream stream,
                          const Marks* marks) {
  const Device& device = *shared_.device;
  const DriverApi& driver = device.driver();
  const auto mark = [&](size_t number) -> Result<> {
    if (marks == nullptr) return Ok();
    return device.check(driver.event_record((*marks)[number].get(), stream), "cuEventRecord");
  };
  // The latest request may have run in another stream.
  KILN_RETURN_IF_ERROR(
      device.check(driver.stream_wait_event(stream, done_.get(), 0), "cuStreamWaitEvent"));
  const IoAddresses io = place(engine, request);
  KILN_RETURN_IF_ERROR(mark(0));
  KILN_RETURN_IF_ERROR(copy_inputs(engine, request, io, stream));
  KILN_RETURN_IF_ERROR(mark(1));
  KILN_RETURN_IF_ERROR(run_steps(request.choice.point, io, stream));
  KILN_RETURN_IF_ERROR(mark(2));
  KILN_RETURN_IF_ERROR(copy_outputs(engine, request, io, stream));
  KILN_RETURN_IF_ERROR(mark(3));
  return device.check(driver.event_record(done_.get(), stream), "cuEventRecord");
}

Result<> CudaContext::run_in(const LoadedEngine& engine, std::span<const Tensor> inputs,
                             std::span<const Tensor> outputs, CUstream stream, bool wait) {
  const Device& device = *shared_.device;
  KILN_ASSIGN_OR_RETURN(const Request request, bind_request(engine, inputs, outputs));
  KILN_RETURN_IF_ERROR(put(engine, request, stream, nullptr));
  if (!wait) return Ok();
  return device.check(device.driver().stream_synchronize(stream), "the request");
}

Result<RequestTimes> CudaContext::time_request(const LoadedEngine& engine,
                                               std::span<const Tensor> inputs,
                                               std::span<const Tensor> outputs) {
  KILN_RETURN_IF_ERROR(check_lost());
  const CurrentDevice current(*shared_.device);
  auto times = time_request_in(engine, inputs, outputs);
  if (!times) note_loss(times.error());
  return times;
}

Result<RequestTimes> CudaContext::time_request_in(const LoadedEngine& engine,
                                                  std::span<const Tensor> inputs,
                                                  std::span<const Tensor> outputs) {
  using Clock = std::chrono::steady_clock;
  const Device& device = *shared_.device;
  const DriverApi& driver = device.driver();
  KILN_ASSIGN_OR_RETURN(const Request request, bind_request(engine, inputs, outputs));
  Marks marks;
  for (Event& mark : marks) {
    KILN_ASSIGN_OR_RETURN(mark, create_event(shared_.device, true));
  }
  const Clock::time_point begin = Clock::now();
  KILN_RETURN_IF_ERROR(put(engine, request, stream_.get(), &marks));
  const Clock::time_point end = Clock::now();
  KILN_RETURN_IF_ERROR(device.check(driver.stream_synchronize(stream_.get()), "the request"));
  RequestTimes times;
  times.enqueue_us = std::chrono::duration<double, std::micro>(end - begin).count();
  double* const parts[] = {&times.copy_in_us, &times.compute_us, &times.copy_out_us};
  for (size_t i = 0; i < std::size(parts); ++i) {
    float milliseconds = 0;
    KILN_RETURN_IF_ERROR(
        device.check(driver.event_elapsed_time(&milliseconds, marks[i].get(), marks[i + 1].get()),
                     "cuEventElapsedTime"));
    *parts[i] = 1000.0 * static_cast<double>(milliseconds);
  }
  return times;
}

}  // namespace kiln::cuda
