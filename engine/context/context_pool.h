// ContextPool: contexts that threads take in turn.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/context/context.h"

namespace kiln {

// Thread-safe.
class ContextPool {
 public:
  explicit ContextPool(std::vector<std::unique_ptr<Context>> contexts);

  // Runs on a free context and waits for one when all are busy. kInvalidArgument if it has none.
  Result<> run(const LoadedEngine& engine, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs);

 private:
  struct Lent;

  std::vector<std::unique_ptr<Context>> contexts_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Context*> free_;  // guarded by mutex_
};

}  // namespace kiln
