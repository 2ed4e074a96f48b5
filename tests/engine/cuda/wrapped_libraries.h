// WrappedLibraries: the driver, cuBLASLt and cuDNN with a test in between. Calls go on to other
// tables; what they make is counted, any one can be made to fail, and the device memory that they
// take is booked by function.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/cuda/libraries.h"

namespace kiln::testing {

class WrappedLibraries : public cuda::Libraries {
 public:
  // One at a time: the functions have no argument of ours, so the tables lead to the latest.
  explicit WrappedLibraries(std::shared_ptr<const cuda::Libraries> real);
  ~WrappedLibraries() override;

  Result<const cuda::DriverApi*> driver() const override;
  Result<const cuda::CublasLtApi*> cublaslt() const override;
  Result<const cuda::CudnnApi*> cudnn() const override;

  // The n-th of the calls that can fail (0: the next) fails, once, without being made. Not those
  // that give something back or make a device current.
  enum class Failure { kOutOfMemory, kLaunchFailed };
  void fail_call(int n, Failure failure);
  // All calls of one function fail likewise, by its name in the table's list ("cuGraphLaunch").
  void fail_function(const std::string& name, Failure failure);
  void fail_nothing();
  std::string failed() const;  // the function that was made to fail
  int calls() const { return calls_; }
  int live() const { return live_; }  // objects made and not given back

  // Reports this version of the library in place of its own.
  void pretend_cudnn(size_t version) { cudnn_version_ = version; }
  void pretend_cublaslt(size_t version) { cublaslt_version_ = version; }

  // Bytes of device memory that are gone since the call before, added up by function.
  void start_booking();
  std::map<std::string, int64_t> stop_booking();

 private:
  template <auto Member>
  friend struct WrappedCall;

  bool fails(const char* name);
  void book(const char* name);

  std::shared_ptr<const cuda::Libraries> real_;
  cuda::DriverApi driver_;
  cuda::CublasLtApi cublaslt_;
  cuda::CudnnApi cudnn_;
  std::atomic<int> calls_ = 0, fail_at_ = -1, live_ = 0;
  std::atomic<size_t> cudnn_version_ = 0, cublaslt_version_ = 0;
  std::atomic<bool> booking_ = false;
  Failure failure_ = Failure::kOutOfMemory;
  mutable std::mutex mutex_;  // guards all below
  std::string fail_name_, failed_;
  size_t free_bytes_ = 0;
  std::map<std::string, int64_t> booked_;
};

}  // namespace kiln::testing
