#include "engine/context/context_pool.h"

namespace kiln {

ContextPool::ContextPool(std::vector<std::unique_ptr<Context>> contexts)
    : contexts_(std::move(contexts)) {
  for (const auto& context : contexts_) free_.push_back(context.get());
}

// Gives a context back however the run ends. `free_` has room for all.
struct ContextPool::Lent {
  ContextPool& pool;
  Context& context;
  ~Lent() {
    {
      const std::lock_guard lock(pool.mutex_);
      pool.free_.push_back(&context);
    }
    pool.freed_.notify_one();
  }
};

Result<> ContextPool::run(const LoadedEngine& engine, std::span<const Tensor> inputs,
                          std::span<const Tensor> outputs) {
  if (contexts_.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "infer needs a context, LoadOptions::contexts is 0; use create_context()"};
  }
  Context* context = nullptr;
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !free_.empty(); });
    context = free_.back();  // the last one used: its memory is the warmest
    free_.pop_back();
  }
  const Lent lent{*this, *context};
  return context->run(engine, inputs, outputs, {});
}

}  // namespace kiln
