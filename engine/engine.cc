#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <new>

#include "engine/context/context_pool.h"
#include "engine/load/loaded_engine.h"
#include "engine/request/choose_point.h"
#include "engine/request/match_tensors.h"
#include "formats/engine_file/read_engine.h"

namespace kiln {
namespace {

// The wall of this room: no exception crosses it. The messages need no memory.
template <class Call>
auto guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, "memory ran out"};
  } catch (const std::exception&) {
    return Error{ErrorCode::kInternal, "it threw"};
  }
}

Error moved_from(const char* what) {
  return {ErrorCode::kInvalidArgument, std::string("the ") + what + " was moved from"};
}

}  // namespace

struct ExecutionContext::State {
  std::shared_ptr<const LoadedEngine> engine;
  std::unique_ptr<Context> context;
};

ExecutionContext::ExecutionContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExecutionContext::ExecutionContext(ExecutionContext&&) noexcept = default;
ExecutionContext& ExecutionContext::operator=(ExecutionContext&&) noexcept = default;
ExecutionContext::~ExecutionContext() = default;

Result<> ExecutionContext::enqueue(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                   Stream stream) {
  if (!state_) return moved_from("context");
  return guarded([&] { return state_->context->run(*state_->engine, inputs, outputs, stream); });
}

Result<double> ExecutionContext::time_on_device(size_t point, int runs) {
  if (!state_) return moved_from("context");
  if (point >= state_->engine->plan.points.size() || runs < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "cannot time " + std::to_string(runs) + " runs of shape point " +
                     std::to_string(point) + ", the engine has " +
                     std::to_string(state_->engine->plan.points.size()) + " points"};
  }
  return guarded([&] { return state_->context->time_on_device(point, runs); });
}

Result<RequestTimes> ExecutionContext::time_request(std::span<const Tensor> inputs,
                                                    std::span<const Tensor> outputs) {
  if (!state_) return moved_from("context");
  return guarded([&] { return state_->context->time_request(*state_->engine, inputs, outputs); });
}

Result<double> ExecutionContext::time_with_cold_weights(size_t point, int copies, int runs) {
  if (!state_) return moved_from("context");
  if (point >= state_->engine->plan.points.size() || copies < 1 || runs < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "cannot time " + std::to_string(runs) + " runs of " + std::to_string(copies) +
                     " copies of shape point " + std::to_string(point)};
  }
  return guarded([&] { return state_->context->time_with_cold_weights(point, copies, runs); });
}

Result<> ExecutionContext::run_checked(std::span<const Tensor> inputs,
                                       std::span<const Tensor> outputs) {
  if (!state_) return moved_from("context");
  return guarded([&] { return state_->context->run_checked(*state_->engine, inputs, outputs); });
}

struct Engine::State {
  std::shared_ptr<const LoadedEngine> engine;
  mutable ContextPool pool;
};

Engine::Engine(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<Engine> Engine::from_plan(plan::Plan plan, const std::string& name,
                                 const LoadOptions& options) {
  if (options.contexts < 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        "LoadOptions::contexts is " + std::to_string(options.contexts) + ", expected 0 or more"};
  }
  KILN_ASSIGN_OR_RETURN(auto engine, load_engine(std::move(plan), name, options));
  std::vector<std::unique_ptr<Context>> contexts;
  for (int i = 0; i < options.contexts; ++i) {
    auto context = engine->target->create_context(*engine);
    if (!context) {
      return std::move(context).error().context("engine '" + name + "': context " +
                                                std::to_string(i));
    }
    contexts.push_back(*std::move(context));
  }
  return Engine(
      std::shared_ptr<const State>(new State{std::move(engine), ContextPool(std::move(contexts))}));
}

Result<Engine> Engine::load(const std::filesystem::path& path, const LoadOptions& options) {
  return guarded([&]() -> Result<Engine> {
    KILN_ASSIGN_OR_RETURN(plan::Plan plan,
                          read_engine(path, {.check_weights = options.check_weights}));
    return from_plan(std::move(plan), path.string(), options);
  });
}

Result<Engine> Engine::load_bytes(SharedBytes file, const LoadOptions& options) {
  constexpr const char* kName = "in memory";
  if (reinterpret_cast<uintptr_t>(file.data()) % alignof(int64_t) != 0) {
    return Error{ErrorCode::kInvalidArgument, "engine 'in memory': its bytes are not aligned to 8"};
  }
  return guarded([&]() -> Result<Engine> {
    KILN_ASSIGN_OR_RETURN(plan::Plan plan,
                          parse_engine(file, kName, {.check_weights = options.check_weights}));
    return from_plan(std::move(plan), kName, options);
  });
}

const EngineInfo& Engine::info() const { return state_->engine->info; }

Result<std::vector<TensorInfo>> Engine::output_types(std::span<const Tensor> inputs) const {
  if (!state_) return moved_from("engine");
  return guarded([&]() -> Result<std::vector<TensorInfo>> {
    const LoadedEngine& engine = *state_->engine;
    KILN_ASSIGN_OR_RETURN(const auto in, match_tensors(inputs, engine.plan.inputs, "input"));
    KILN_ASSIGN_OR_RETURN(const Choice choice, choose_point(engine.plan, engine.staging, in));
    std::vector<TensorInfo> types;
    for (size_t i = 0; i < engine.plan.outputs.size(); ++i) {
      const plan::IoTensor& output = engine.plan.outputs[i];
      types.push_back({output.name, output_type(engine.plan, choice, i), output.batch_axis});
    }
    return types;
  });
}

Result<size_t> Engine::shape_point(std::span<const Tensor> inputs) const {
  if (!state_) return moved_from("engine");
  return guarded([&]() -> Result<size_t> {
    const LoadedEngine& engine = *state_->engine;
    KILN_ASSIGN_OR_RETURN(const auto in, match_tensors(inputs, engine.plan.inputs, "input"));
    KILN_ASSIGN_OR_RETURN(const Choice choice, choose_point(engine.plan, engine.staging, in));
    return choice.point;
  });
}

Result<ExecutionContext> Engine::create_context() const {
  if (!state_) return moved_from("engine");
  return guarded([&]() -> Result<ExecutionContext> {
    KILN_ASSIGN_OR_RETURN(auto context, state_->engine->target->create_context(*state_->engine));
    return ExecutionContext(std::make_unique<ExecutionContext::State>(
        ExecutionContext::State{state_->engine, std::move(context)}));
  });
}

Result<std::shared_ptr<std::byte>> Engine::allocate(MemoryKind memory, uint64_t bytes) const {
  if (!state_) return moved_from("engine");
  return guarded(
      [&] { return state_->engine->target->allocate(memory, std::max<uint64_t>(bytes, 1)); });
}

Result<> Engine::copy(void* to, const void* from, uint64_t bytes) const {
  if (!state_) return moved_from("engine");
  if (bytes > 0 && (to == nullptr || from == nullptr)) {
    return Error{ErrorCode::kInvalidArgument, "copy of " + std::to_string(bytes) +
                                                  " bytes: no memory is given to copy " +
                                                  (to == nullptr ? "to" : "from")};
  }
  return guarded([&] { return state_->engine->target->copy(to, from, bytes); });
}

Result<> Engine::infer(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
  if (!state_) return moved_from("engine");
  return guarded([&] { return state_->pool.run(*state_->engine, inputs, outputs); });
}

}  // namespace kiln
