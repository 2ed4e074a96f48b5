// The tables of functions that fakes give; what is not set is not there.
#pragma once
#include <memory>
#include <optional>

#include "engine/cuda/libraries.h"

namespace kiln::testing {

struct FakeLibraries final : cuda::Libraries {
  std::optional<cuda::DriverApi> driver_api;
  std::optional<cuda::CublasLtApi> cublaslt_api;
  std::optional<cuda::CudnnApi> cudnn_api;

  Result<const cuda::DriverApi*> driver() const override { return get(driver_api, "driver"); }
  Result<const cuda::CublasLtApi*> cublaslt() const override {
    return get(cublaslt_api, "cuBLASLt");
  }
  Result<const cuda::CudnnApi*> cudnn() const override { return get(cudnn_api, "cuDNN"); }

 private:
  template <class Api>
  static Result<const Api*> get(const std::optional<Api>& api, const char* name) {
    if (api) return &*api;
    return Error{ErrorCode::kUnsupported, std::string("no ") + name + " here"};
  }
};

}  // namespace kiln::testing
