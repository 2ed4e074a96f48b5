#include "builder/verify/cuda/gpu_comparison.h"

#include <algorithm>
#include <vector>

#include "engine/cuda/addresses.h"

namespace kiln {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocks = 1024;

// As in comparison_kernels.cuh.
struct RowsParameters {
  CUdeviceptr want = 0, scales = 0;
  int64_t rows = 0, length = 0;
  int dtype = 0, lanes = 0;
};
struct Found {
  double over = 0, got = 0, want = 0, allowed = 0;
  double max_abs_error = 0, max_rel_error = 0;
  int64_t index = 0;
};
struct ComparisonParameters {
  CUdeviceptr got = 0, want = 0, scales = 0, found = 0;
  int64_t count = 0, length = 0;
  double rtol = 0, atol = 0, noise = 0;
  int dtype = 0;
};

int dtype_number(DType dtype) { return dtype == DType::kF32 ? 0 : dtype == DType::kF16 ? 1 : 2; }

unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((items + per_block - 1) / per_block, 1, kMostBlocks));
}

void merge(Found& into, const Found& other) {
  const double abs_error = std::max(into.max_abs_error, other.max_abs_error);
  const double rel_error = std::max(into.max_rel_error, other.max_rel_error);
  const bool earlier = other.over == into.over && other.index < into.index;
  if (other.over > into.over || earlier) into = other;
  into.max_abs_error = abs_error;
  into.max_rel_error = rel_error;
}

}  // namespace

bool GpuComparison::can_compare(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

int64_t GpuComparison::row_length() const {
  return type_.shape.empty() ? type_.elements() : type_.shape.back();
}

Result<GpuComparison> GpuComparison::create(PlainKernels& kernels, const TensorType& type,
                                            CUdeviceptr want) {
  GpuComparison made(kernels, type, want);
  if (type.elements() == 0) return made;
  RowsParameters p{
      want, 0, type.elements() / made.row_length(), made.row_length(), dtype_number(type.dtype), 0};
  p.lanes = p.length >= 1024 ? 256 : p.length >= 32 ? 32 : 1;
  KILN_ASSIGN_OR_RETURN(
      made.scales_, cuda::allocate(kernels.device(), static_cast<uint64_t>(p.rows) * sizeof(double),
                                   "the comparison"));
  KILN_ASSIGN_OR_RETURN(
      made.found_, cuda::allocate(kernels.device(), kMostBlocks * sizeof(Found), "the comparison"));
  p.scales = made.scales_.get();
  const unsigned blocks = blocks_for(p.rows, kThreads / static_cast<unsigned>(p.lanes));
  KILN_RETURN_IF_ERROR(kernels.launch("row_scales", p, {blocks, 1}, {kThreads, 1}));
  return made;
}

Result<Comparison> GpuComparison::compare(CUdeviceptr got, const AccuracyPolicy& policy) {
  Comparison result;
  const int64_t count = type_.elements();
  if (count == 0) return result;
  const ComparisonParameters p{
      got,          want_,       scales_.get(), found_.get(), count,
      row_length(), policy.rtol, policy.atol,   policy.noise, dtype_number(type_.dtype)};
  std::vector<Found> found(blocks_for(count, 4 * kThreads));
  KILN_RETURN_IF_ERROR(kernels_->launch("compare_elements", p,
                                        {static_cast<unsigned>(found.size()), 1}, {kThreads, 1}));
  KILN_RETURN_IF_ERROR(
      kernels_->copy(cuda::address_of(found.data()), found_.get(), found.size() * sizeof(Found)));
  KILN_RETURN_IF_ERROR(kernels_->synchronize("the comparison with the reference"));
  Found worst = found.front();
  for (const Found& one : found) merge(worst, one);
  result.rows = count / row_length();
  result.passed = worst.over <= 1;
  result.max_abs_error = worst.max_abs_error;
  result.max_rel_error = worst.max_rel_error;
  if (worst.over > 0) {
    result.worst =
        describe_element(static_cast<size_t>(worst.index), worst.got, worst.want, worst.allowed);
  }
  return result;
}

}  // namespace kiln
