#include "builder/tactics/cuda/gpu_trial_tensors.h"

#include <optional>

#include "builder/verify/cuda/gpu_comparison.h"
#include "engine/cuda/addresses.h"
#include "engine/cuda/io_buffers.h"

namespace kiln {
namespace {

// Off the alignment from which on an engine takes a caller's tensors as they are: candidates work
// on copies in their context, where the clock runs them too.
constexpr size_t kShift = 16;
static_assert(kShift % cuda::kIoAlignment != 0);

class GpuTrialTensors : public TrialTensors {
 public:
  explicit GpuTrialTensors(const CudaTools& tools) : kernels_(tools, comparison_kernels()) {}

  Result<> place(std::span<const HostTensor> inputs, std::span<const HostTensor> outputs) override {
    const cuda::CurrentDevice current(*kernels_.device());
    KILN_RETURN_IF_ERROR(kernels_.open());
    want_ = outputs;
    layout_ = lay_out_trial(inputs, outputs);
    comparisons_.clear();
    block_ = {};
    KILN_ASSIGN_OR_RETURN(
        block_, cuda::allocate(kernels_.device(), layout_.bytes + kShift, "a region's tensors"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      KILN_RETURN_IF_ERROR(upload(inputs[i], cuda::address_of(input(i))));
    }
    for (const HostTensor& tensor : outputs) {
      auto& expected = comparisons_.emplace_back();
      if (GpuComparison::can_compare(tensor.type.dtype)) {
        KILN_ASSIGN_OR_RETURN(expected, expect(tensor));
      }
    }
    return kernels_.synchronize("a region's tensors");
  }

  MemoryKind memory() const override { return MemoryKind::kDevice; }
  std::byte* input(size_t i) override { return at(layout_.inputs[i]); }
  std::byte* output(size_t i) override { return at(layout_.outputs[i]); }

  Result<> poison_outputs() override {
    const cuda::CurrentDevice current(*kernels_.device());
    for (const TrialLayout::Piece& piece : layout_.outputs) {
      KILN_RETURN_IF_ERROR(kernels_.fill(cuda::address_of(at(piece)) - TrialLayout::kRedZone,
                                         TrialLayout::kRedZoneByte,
                                         piece.bytes + 2 * TrialLayout::kRedZone));
    }
    return kernels_.synchronize("poison in a region's outputs");
  }

  Result<Comparison> check_output(size_t i, const AccuracyPolicy& policy) override {
    const cuda::CurrentDevice current(*kernels_.device());
    const CUdeviceptr begin = cuda::address_of(output(i));
    constexpr size_t kZone = TrialLayout::kRedZone;
    for (const CUdeviceptr zone : {begin - kZone, begin + layout_.outputs[i].bytes}) {
      KILN_ASSIGN_OR_RETURN(const auto bytes, download(zone, kZone));
      KILN_RETURN_IF_ERROR(check_red_zone(bytes, i));
    }
    if (comparisons_[i]) return comparisons_[i]->comparison.compare(begin, policy);
    KILN_ASSIGN_OR_RETURN(const auto got, download(begin, layout_.outputs[i].bytes));
    return compare(want_[i].type, got.data(), want_[i].bytes.data(), policy);
  }

 private:
  struct Expected {
    cuda::DeviceMemory values;
    GpuComparison comparison;
  };

  std::byte* at(const TrialLayout::Piece& piece) const {
    return cuda::pointer_to(block_.get() + kShift + piece.at);
  }

  Result<> upload(const HostTensor& tensor, CUdeviceptr to) {
    return kernels_.copy(to, cuda::address_of(tensor.bytes.data()),
                         static_cast<uint64_t>(tensor.type.bytes()));
  }

  Result<std::optional<Expected>> expect(const HostTensor& tensor) {
    KILN_ASSIGN_OR_RETURN(
        cuda::DeviceMemory values,
        cuda::allocate(kernels_.device(), static_cast<uint64_t>(tensor.type.bytes()),
                       "a region's expected output"));
    KILN_RETURN_IF_ERROR(upload(tensor, values.get()));
    KILN_ASSIGN_OR_RETURN(GpuComparison comparison,
                          GpuComparison::create(kernels_, tensor.type, values.get()));
    return std::optional(Expected{std::move(values), std::move(comparison)});
  }

  Result<std::vector<std::byte>> download(CUdeviceptr from, size_t bytes) {
    std::vector<std::byte> got(bytes);
    KILN_RETURN_IF_ERROR(kernels_.copy(cuda::address_of(got.data()), from, bytes));
    KILN_RETURN_IF_ERROR(kernels_.synchronize("a region's output"));
    return got;
  }

  PlainKernels kernels_;
  TrialLayout layout_;
  std::span<const HostTensor> want_;
  cuda::DeviceMemory block_;
  std::vector<std::optional<Expected>> comparisons_;
};

}  // namespace

std::unique_ptr<TrialTensors> make_gpu_trial_tensors(const CudaTools& tools) {
  return std::make_unique<GpuTrialTensors>(tools);
}

}  // namespace kiln
