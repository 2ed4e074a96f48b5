#include "builder/tactics/cuda/cublaslt_matmul.h"

#include <algorithm>
#include <array>

#include "engine/cuda/cublaslt_handle.h"
#include "engine/cuda/matmul/descriptors.h"
#include "engine/cuda/matmul/operation.h"

namespace kiln {
namespace {

using cuda::MatmulProblem;
using cuda::MatrixView;

// What heuristics may assume of the workspace, in bytes: less room proposes other algorithms.
constexpr std::array<uint64_t, 3> kWorkspaces = {32 << 20, 0, 128 << 20};
constexpr int kAsked = 8;  // algorithms of each

// Strides over the result's batch axes of an operand whose own broadcast.
MatrixView view_of(const Shape& shape, const Shape& result, bool transposed) {
  MatrixView view;
  view.transposed = transposed;
  view.leading = shape[shape.size() - 1];
  view.batch_strides.assign(result.size() - 2, 0);
  int64_t stride = shape[shape.size() - 1] * shape[shape.size() - 2];
  for (size_t i = shape.size() - 2; i-- > 0;) {
    if (shape[i] > 1) view.batch_strides[result.size() - shape.size() + i] = stride;
    stride *= shape[i];
  }
  return view;
}

// Merges neighbouring batch axes that every view walks as one: cuBLASLt has a single batch axis.
void merge_batch(MatmulProblem& p) {
  for (size_t i = 0; i + 1 < p.batch.size();) {
    const auto joins = [&](const MatrixView& view) {
      return view.batch_strides[i] == view.batch_strides[i + 1] * p.batch[i + 1];
    };
    if (p.batch[i] != 1 && p.batch[i + 1] != 1 && !(joins(p.a) && joins(p.b) && joins(p.d))) {
      ++i;
      continue;
    }
    const size_t gone = p.batch[i + 1] == 1 ? i + 1 : i;  // keeps the inner stride where both count
    for (MatrixView* view : {&p.a, &p.b, &p.d}) {
      view->batch_strides.erase(view->batch_strides.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    p.batch[i] *= p.batch[i + 1];
    p.batch.erase(p.batch.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// One matrix b for all of a's rows makes one large matmul of the batch.
void fold_rows(MatmulProblem& p) {
  const bool foldable = p.batch.size() == 1 && !p.a.transposed && p.b.batch_strides[0] == 0 &&
                        p.a.batch_strides[0] == p.m * p.a.leading &&
                        p.d.batch_strides[0] == p.m * p.d.leading;
  if (!foldable) return;
  p.m *= p.batch[0];
  p.batch.clear();
  for (MatrixView* view : {&p.a, &p.b, &p.d}) view->batch_strides.clear();
}

class Preference {
 public:
  explicit Preference(const cuda::CublasLtApi& cublaslt) : cublaslt_(cublaslt) {}

  Result<cublasLtMatmulPreference_t> make(uint64_t workspace_bytes, uint32_t alignment) {
    KILN_RETURN_IF_ERROR(check(cublaslt_,
                               cublaslt_.preference_init(&preference_, sizeof preference_),
                               "cublasLtMatmulPreferenceInit"));
    KILN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      KILN_RETURN_IF_ERROR(set(attribute, alignment));
    }
    return &preference_;
  }

 private:
  template <class T>
  Result<> set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    return check(cublaslt_,
                 cublaslt_.preference_set_attribute(&preference_, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  }

  const cuda::CublasLtApi& cublaslt_;
  cublasLtMatmulPreferenceOpaque_t preference_ = {};
};

Result<std::vector<cublasLtMatmulHeuristicResult_t>> ask(const cuda::CublasLtApi& cublaslt,
                                                         cublasLtHandle_t handle,
                                                         const MatmulProblem& problem,
                                                         uint64_t workspace_bytes) {
  cuda::MatmulDescriptors described;
  KILN_RETURN_IF_ERROR(describe(cublaslt, problem, nullptr, described));
  Preference preference(cublaslt);
  KILN_ASSIGN_OR_RETURN(
      const auto wish,
      preference.make(workspace_bytes, static_cast<uint32_t>(alignment_of(problem))));
  std::vector<cublasLtMatmulHeuristicResult_t> found(kAsked);
  int count = 0;
  // A row-major product is a column-major one with its operands exchanged.
  const cublasStatus_t status =
      cublaslt.algo_get_heuristic(handle, &described.operation, &described.b, &described.a,
                                  &described.d, &described.d, wish, kAsked, found.data(), &count);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

}  // namespace

Result<MatmulProblem> matmul_problem(const MatmulRequest& request, bool allow_tf32) {
  const Shape &a = request.a.shape, &b = request.b.shape, &d = request.result.shape;
  if (a.size() < 2 || b.size() < 2 || request.result.elements() == 0 || request.a.elements() == 0) {
    return Error{ErrorCode::kUnsupported, "an operand is a vector or empty"};
  }
  MatmulProblem p;
  p.m = d[d.size() - 2];
  p.n = d[d.size() - 1];
  p.k = a[a.size() - (request.transpose_a ? 2 : 1)];
  p.batch.assign(d.begin(), d.end() - 2);
  p.operand_dtype = request.a.dtype;
  p.result_dtype = request.result.dtype;
  p.a = view_of(a, d, request.transpose_a);
  p.b = view_of(b, d, request.transpose_b);
  p.d = view_of(d, d, false);
  if (request.a.dtype == DType::kF64) p.compute = MatmulProblem::Compute::kF64;
  if (request.a.dtype == DType::kF32 && allow_tf32) p.compute = MatmulProblem::Compute::kTf32;
  merge_batch(p);
  fold_rows(p);
  const TensorType inputs[] = {request.a, request.b};
  auto fits = check(p, inputs, {&request.result, 1});
  if (!fits.ok()) return Error{ErrorCode::kUnsupported, fits.error().message};
  return p;
}

Result<std::vector<MatmulChoice>> cublaslt_choices(const CudaTools& tools,
                                                   const MatmulRequest& request, size_t most) {
  if (!tools.cublaslt) return Error{ErrorCode::kUnsupported, "needs the GPU"};
  KILN_ASSIGN_OR_RETURN(const MatmulProblem problem, matmul_problem(request, tools.allow_tf32));
  KILN_ASSIGN_OR_RETURN(const cuda::CublasLtApi* cublaslt, tools.cublaslt->api());
  KILN_ASSIGN_OR_RETURN(const cublasLtHandle_t handle, tools.cublaslt->get());
  std::vector<MatmulChoice> choices;
  for (uint64_t workspace : kWorkspaces) {
    KILN_ASSIGN_OR_RETURN(const auto found, ask(*cublaslt, handle, problem, workspace));
    for (const auto& one : found) {
      if (choices.size() >= most) break;
      auto algorithm = describe_algorithm(*cublaslt, handle, problem, one.algo, one.workspaceSize);
      if (!algorithm.ok()) continue;
      std::string key = to_string(*algorithm);
      const auto same = [&](const MatmulChoice& other) { return other.key == key; };
      if (std::any_of(choices.begin(), choices.end(), same)) continue;
      LibraryCall call{LibraryCall::Library::kCublasLt,
                       to_operation(cuda::MatmulCall{problem, *algorithm}),
                       {},
                       {},
                       one.workspaceSize};
      choices.push_back({std::move(call), std::move(key)});
    }
  }
  if (choices.empty()) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt has no algorithm for it"};
  }
  return choices;
}

}  // namespace kiln
