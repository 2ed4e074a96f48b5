#include "builder/verify/cuda/gpu_reference.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>

#include "builder/verify/cuda/plain_kernels.h"
#include "builder/verify/sampled_sums.h"
#include "engine/cuda/addresses.h"

namespace kiln {

// builder/verify/cuda/element_values.cuh and reference_kernels.cuh
std::string_view reference_kernels();

namespace {

// Work under which copying to the GPU and back costs more than it saves.
constexpr double kLeastMultiplies = 1e6;

using Axes = std::array<int64_t, 3>;

// As in reference_kernels.cuh.
struct MatmulParameters {
  CUdeviceptr a = 0, b = 0, c = 0;
  int64_t a_offset = 0, b_offset = 0, c_offset = 0;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  int64_t m = 0, n = 0, k = 0;
  int dtype = 0;
};
struct ConvParameters {
  CUdeviceptr x = 0, w = 0, bias = 0, y = 0;
  int64_t batch = 0, groups = 0, in_channels = 0, out_channels = 0;
  Axes in = {1, 1, 1}, out = {1, 1, 1}, kernel = {1, 1, 1}, stride = {1, 1, 1},
       dilation = {1, 1, 1}, pad = {0, 0, 0};
  int dtype = 0;
};

std::optional<int> dtype_number(std::span<const TensorType> types) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN};
  for (int i = 0; i < 4; ++i) {
    const auto same = [&](const TensorType& type) { return type.dtype == kTypes[i]; };
    if (std::all_of(types.begin(), types.end(), same)) return i;
  }
  return std::nullopt;
}

// Element offset of batch `index` (row-major over the result's leading axes) in an operand whose
// leading axes broadcast.
int64_t batch_offset(const Shape& operand, const Shape& result, int64_t index) {
  const size_t leading = result.size() - 2;
  int64_t offset = 0, stride = operand[operand.size() - 1] * operand[operand.size() - 2];
  for (size_t i = leading; i-- > 0;) {
    const int64_t at = index % result[i];
    index /= result[i];
    const size_t missing = result.size() - operand.size();
    if (i < missing) continue;
    const int64_t extent = operand[i - missing];
    if (extent > 1) offset += at * stride;
    stride *= extent;
  }
  return offset;
}

class GpuReference {
 public:
  explicit GpuReference(const CudaTools& tools) : kernels_(tools, reference_kernels()) {}

  // False where the host has to do it.
  Result<bool> run(const Operation& operation, std::span<const TensorType> types,
                   std::span<const void* const> inputs, std::span<const TensorType> output_types,
                   std::span<void* const> outputs) {
    const auto dtype = dtype_number(types);
    if (!dtype || output_types.size() != 1) return false;
    const bool codes = types[0].dtype == DType::kF8E4M3FN;  // multiplied into f32
    if (output_types[0].dtype != (codes ? DType::kF32 : types[0].dtype)) return false;
    const bool matmul = operation.name == "matmul";
    if (!matmul && operation.name != "conv" && operation.name != "conv_transpose") return false;
    if (output_types[0].elements() == 0 || types[0].elements() == 0) return false;
    if (matmul && (types[0].shape.size() < 2 || types[1].shape.size() < 2)) return false;
    if (!matmul && types[0].shape.size() > 5) return false;
    if (multiplies(matmul, types, output_types[0], operation) < kLeastMultiplies) return false;
    const std::lock_guard lock(mutex_);
    const cuda::CurrentDevice current(*kernels_.device());
    KILN_RETURN_IF_ERROR(kernels_.open());
    KILN_ASSIGN_OR_RETURN(const auto operands, upload(types, inputs));
    KILN_ASSIGN_OR_RETURN(
        const cuda::DeviceMemory result,
        cuda::allocate(kernels_.device(), bytes_of(output_types[0]), "the reference"));
    KILN_RETURN_IF_ERROR(
        matmul ? run_matmul(operation, types, operands, output_types[0], result.get(), *dtype)
               : run_conv(operation, types, operands, output_types[0], result.get(), *dtype));
    KILN_RETURN_IF_ERROR(
        kernels_.copy(cuda::address_of(outputs[0]), result.get(), bytes_of(output_types[0])));
    KILN_RETURN_IF_ERROR(kernels_.synchronize("the reference on the GPU"));
    KILN_RETURN_IF_ERROR(check_sampled_sums(operation, types, inputs, output_types[0], outputs[0]));
    return true;
  }

 private:
  static uint64_t bytes_of(const TensorType& type) { return static_cast<uint64_t>(type.bytes()); }

  static double multiplies(bool matmul, std::span<const TensorType> types, const TensorType& output,
                           const Operation& operation) {
    const auto results = static_cast<double>(output.elements());
    if (matmul) {
      const Shape& a = types[0].shape;
      return results *
             static_cast<double>(a[a.size() - (operation.get_int("transpose_a", 0) ? 2 : 1)]);
    }
    const Shape& w = types[1].shape;
    double taps = static_cast<double>(w[1]);
    for (size_t i = 2; i < w.size(); ++i) taps *= static_cast<double>(w[i]);
    return results * taps;
  }

  Result<std::vector<cuda::DeviceMemory>> upload(std::span<const TensorType> types,
                                                 std::span<const void* const> inputs) {
    std::vector<cuda::DeviceMemory> operands;
    for (size_t i = 0; i < types.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(cuda::DeviceMemory memory,
                            cuda::allocate(kernels_.device(), bytes_of(types[i]), "the reference"));
      KILN_RETURN_IF_ERROR(
          kernels_.copy(memory.get(), cuda::address_of(inputs[i]), bytes_of(types[i])));
      operands.push_back(std::move(memory));
    }
    return operands;
  }

  Result<> run_matmul(const Operation& operation, std::span<const TensorType> types,
                      const std::vector<cuda::DeviceMemory>& operands, const TensorType& output,
                      CUdeviceptr result, int dtype) {
    const Shape &a = types[0].shape, &b = types[1].shape, &c = output.shape;
    const bool transpose_a = operation.get_int("transpose_a", 0) != 0;
    const bool transpose_b = operation.get_int("transpose_b", 0) != 0;
    MatmulParameters p;
    p.a = operands[0].get();
    p.b = operands[1].get();
    p.c = result;
    p.m = c[c.size() - 2];
    p.n = c[c.size() - 1];
    p.k = a[a.size() - (transpose_a ? 2 : 1)];
    p.a_row = transpose_a ? 1 : p.k;
    p.a_column = transpose_a ? p.m : 1;
    p.b_row = transpose_b ? 1 : p.n;
    p.b_column = transpose_b ? p.k : 1;
    p.dtype = dtype;
    const int64_t batches = output.elements() / (p.m * p.n);
    const auto tiles = [](int64_t extent) { return static_cast<unsigned>((extent + 15) / 16); };
    for (int64_t i = 0; i < batches; ++i) {
      p.a_offset = batch_offset(a, c, i);
      p.b_offset = batch_offset(b, c, i);
      p.c_offset = i * p.m * p.n;
      KILN_RETURN_IF_ERROR(
          kernels_.launch("reference_matmul", p, {tiles(p.n), tiles(p.m)}, {16, 16}));
    }
    return Ok();
  }

  Result<> run_conv(const Operation& operation, std::span<const TensorType> types,
                    const std::vector<cuda::DeviceMemory>& operands, const TensorType& output,
                    CUdeviceptr result, int dtype) {
    const Shape &x = types[0].shape, &w = types[1].shape;
    const bool transposed = operation.name == "conv_transpose";
    ConvParameters p;
    p.x = operands[0].get();
    p.w = operands[1].get();
    p.bias = operands.size() > 2 ? operands[2].get() : 0;
    p.y = result;
    p.batch = x[0];
    p.groups = operation.get_int("groups", 1);
    p.in_channels = x[1] / p.groups;
    p.out_channels = output.shape[1] / p.groups;
    p.dtype = dtype;
    const size_t rank = x.size() - 2, skip = 3 - rank;
    const auto strides = operation.get_ints("strides"), dilations = operation.get_ints("dilations"),
               pads = operation.get_ints("pads_begin");
    for (size_t i = 0; i < rank; ++i) {
      p.in[skip + i] = x[2 + i];
      p.out[skip + i] = output.shape[2 + i];
      p.kernel[skip + i] = w[2 + i];
      if (i < strides.size()) p.stride[skip + i] = strides[i];
      if (i < dilations.size()) p.dilation[skip + i] = dilations[i];
      if (i < pads.size()) p.pad[skip + i] = pads[i];
    }
    const auto blocks = static_cast<unsigned>((output.elements() + 255) / 256);
    return kernels_.launch(transposed ? "reference_conv_transpose" : "reference_conv", p,
                           {blocks, 1}, {256, 1});
  }

  std::mutex mutex_;
  PlainKernels kernels_;  // guarded by mutex_
};

}  // namespace

ReferenceAccelerator make_gpu_reference(const CudaTools& tools) {
  auto reference = std::make_shared<GpuReference>(tools);
  return [reference](const Operation& operation, std::span<const TensorType> types,
                     std::span<const void* const> inputs, std::span<const TensorType> output_types,
                     std::span<void* const> outputs) {
    return reference->run(operation, types, inputs, output_types, outputs);
  };
}

}  // namespace kiln
