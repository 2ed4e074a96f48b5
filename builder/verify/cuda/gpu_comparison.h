// Comparison with a reference that lies on the GPU, by plain kernels: what compare() says of the
// same values.
#pragma once
#include "builder/verify/compare.h"
#include "builder/verify/cuda/plain_kernels.h"

namespace kiln {

// One expected tensor on the device. Not thread-safe. REQUIRES of every call: the device is
// current.
class GpuComparison {
 public:
  // f32, f16 and bf16.
  static bool can_compare(DType dtype);

  // REQUIRES: can_compare(); `want` stays where it is; `kernels` is open and stays.
  static Result<GpuComparison> create(PlainKernels& kernels, const TensorType& type,
                                      CUdeviceptr want);

  // min_cosine is not measured. Waits for the device.
  Result<Comparison> compare(CUdeviceptr got, const AccuracyPolicy& policy);

 private:
  GpuComparison(PlainKernels& kernels, const TensorType& type, CUdeviceptr want)
      : kernels_(&kernels), type_(type), want_(want) {}
  int64_t row_length() const;

  PlainKernels* kernels_;
  TensorType type_;
  CUdeviceptr want_;
  cuda::DeviceMemory scales_, found_;
};

std::string_view comparison_kernels();

}  // namespace kiln
