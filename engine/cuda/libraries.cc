#include "engine/cuda/libraries.h"

#include <mutex>
#include <optional>

namespace kiln::cuda {
namespace {

// A table that is opened on first use; a failure is kept and told again.
template <class Api>
class Once {
 public:
  Result<const Api*> get(Result<Api> (*open)()) const {
    const std::lock_guard lock(mutex_);
    if (!opened_) opened_ = open();
    if (!opened_->ok()) return opened_->error();
    return &**opened_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<Result<Api>> opened_;  // guarded by mutex_
};

class SystemLibraries : public Libraries {
 public:
  Result<const DriverApi*> driver() const override { return driver_.get(open_driver); }
  Result<const CublasLtApi*> cublaslt() const override { return cublaslt_.get(open_cublaslt); }
  Result<const CudnnApi*> cudnn() const override { return cudnn_.get(open_cudnn); }

 private:
  Once<DriverApi> driver_;
  Once<CublasLtApi> cublaslt_;
  Once<CudnnApi> cudnn_;
};

}  // namespace

std::shared_ptr<const Libraries> Libraries::system() {
  static const auto libraries = std::make_shared<const SystemLibraries>();
  return libraries;
}

}  // namespace kiln::cuda
