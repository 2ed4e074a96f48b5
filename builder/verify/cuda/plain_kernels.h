// PlainKernels: kernels written by hand that no tactic uses, on a stream of their own: what
// verification is done with.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "builder/codegen/cuda/compile.h"
#include "builder/cuda/build_tools.h"
#include "engine/cuda/owned.h"

namespace kiln {

// Not thread-safe. REQUIRES of every call but open(): open() succeeded, and the tools' device is
// current.
class PlainKernels {
 public:
  PlainKernels(const CudaTools& tools, std::string_view text);

  // Compiles and loads the text; once, later calls do nothing.
  Result<> open();

  // `parameters` is the kernel's one parameter, a struct laid out as the text's.
  template <class Parameters>
  Result<> launch(const char* kernel, Parameters parameters, std::array<unsigned, 2> grid,
                  std::array<unsigned, 2> block) {
    return launch_at(kernel, &parameters, grid, block);
  }
  // Between any two of host and device; host memory must stay until synchronize().
  Result<> copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);
  Result<> fill(CUdeviceptr at, std::byte value, uint64_t bytes);
  Result<> synchronize(const char* what);

  const std::shared_ptr<const cuda::Device>& device() const { return device_; }

 private:
  Result<> launch_at(const char* kernel, void* parameters, std::array<unsigned, 2> grid,
                     std::array<unsigned, 2> block);

  std::shared_ptr<const cuda::Device> device_;
  std::shared_ptr<KernelCompiler> compiler_;
  std::string_view text_;
  cuda::OwnedStream stream_;
  codegen::Cubin cubin_;
  cuda::Module module_;
};

}  // namespace kiln
