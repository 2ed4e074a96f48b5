#include "engine/context/context_pool.h"

namespace kiln {

ContextPool::ContextPool(std::vector<std::unique_ptr<Context>> contexts)
    : contexts_(std::move(contexts)) {
  for (const auto& context : contexts_) free_.push_back(context.get());
}

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
  auto ran = context->run(engine, inputs, outputs, {});
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(context);
  }
  freed_.notify_one();
  return ran;
}

}  // namespace kiln
