#include "builder/tactics/cuda/cublaslt_algorithms.h"

#include <algorithm>
#include <array>

#include "engine/cuda/library_handle.h"
#include "engine/cuda/matmul/descriptors.h"

namespace kiln {
namespace {

using cuda::CublasLtApi;
using cuda::MatmulAlgorithm;
using cuda::MatmulProblem;
using Results = std::vector<cublasLtMatmulHeuristicResult_t>;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr std::array<uint64_t, 3> kWorkspaceLimits = {32 * kMiB, 128 * kMiB, 0};
constexpr uint64_t kSingleIdLimit = 32 * kMiB;

class Search {
 public:
  Search(const CublasLtApi& cublaslt, cublasLtHandle_t handle, const MatmulProblem& problem)
      : cublaslt_(cublaslt), handle_(handle), problem_(problem) {}

  // One list for each preference, best first.
  Result<std::vector<Results>> run(size_t most) {
    KILN_RETURN_IF_ERROR(cuda::describe(cublaslt_, problem_, {}, described_));
    std::vector<Results> lists;
    for (uint64_t limit : kWorkspaceLimits) {
      KILN_ASSIGN_OR_RETURN(lists.emplace_back(),
                            ask(CUBLASLT_SEARCH_BEST_FIT, limit, Results(most)));
    }
    KILN_ASSIGN_OR_RETURN(lists.emplace_back(), ask_each_id());
    return lists;
  }

 private:
  Result<Results> ask_each_id() {
    constexpr int kMostIds = 128;
    std::array<int, kMostIds> ids = {};
    int count = 0;
    const auto compute = cuda::compute_type_of(problem_.compute);
    const auto scale = cuda::scale_type_of(problem_.compute);
    const auto operand = cuda::data_type_of(problem_.operand_dtype);
    const auto addend = cuda::data_type_of(cuda::addend_dtype(problem_));
    const auto result = cuda::data_type_of(problem_.result_dtype);
    KILN_RETURN_IF_ERROR(
        cuda::check(cublaslt_,
                    cublaslt_.algo_get_ids(handle_, compute, scale, operand, operand, addend,
                                           result, kMostIds, ids.data(), &count),
                    "asking cuBLASLt for its algorithms"));
    Results found;
    for (int i = 0; i < std::min(count, kMostIds); ++i) {
      Results one(1);
      const auto made = cublaslt_.algo_init(handle_, compute, scale, operand, operand, addend,
                                            result, ids[static_cast<size_t>(i)], &one[0].algo);
      if (made != CUBLAS_STATUS_SUCCESS) continue;
      KILN_ASSIGN_OR_RETURN(
          one, ask(CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID, kSingleIdLimit, std::move(one)));
      found.insert(found.end(), one.begin(), one.end());
    }
    // Fewer waves first: the only estimate that compares different ids.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return x.wavesCount < y.wavesCount; });
    return found;
  }

  // `results` is as long as what is wanted; what comes back is what is usable.
  Result<Results> ask(cublasLtMatmulSearch_t mode, uint64_t workspace_bytes, Results results) {
    cublasLtMatmulPreferenceOpaque_t preference = {};
    KILN_RETURN_IF_ERROR(cuda::check(cublaslt_,
                                     cublaslt_.preference_init(&preference, sizeof preference),
                                     "making a preference for cuBLASLt"));
    const auto alignment = static_cast<uint32_t>(cuda::alignment_of(problem_));
    KILN_RETURN_IF_ERROR(
        set(preference, CUBLASLT_MATMUL_PREF_SEARCH_MODE, static_cast<uint32_t>(mode)));
    KILN_RETURN_IF_ERROR(
        set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
    KILN_RETURN_IF_ERROR(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions()));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      KILN_RETURN_IF_ERROR(set(preference, attribute, alignment));
    }
    int count = 0;
    const auto status = cublaslt_.algo_get_heuristic(
        handle_, &described_.operation, &described_.b, &described_.a, &described_.c, &described_.d,
        &preference, static_cast<int>(results.size()), results.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return Results{};
    KILN_RETURN_IF_ERROR(cuda::check(cublaslt_, status, "asking cuBLASLt's heuristics"));
    results.resize(std::min(results.size(), static_cast<size_t>(std::max(count, 0))));
    std::erase_if(results, [&](const auto& result) {
      return result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_bytes;
    });
    return results;
  }

  // Where the results of split-K are added: in f16 or bf16 they would lose what f32 sums hold.
  uint32_t reductions() const {
    const uint32_t wide = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    return bits_of(problem_.result_dtype) < 32 ? wide : wide | CUBLASLT_REDUCTION_SCHEME_INPLACE;
  }

  template <class T>
  Result<> set(cublasLtMatmulPreferenceOpaque_t& to, cublasLtMatmulPreferenceAttributes_t attribute,
               T value) const {
    return cuda::check(cublaslt_,
                       cublaslt_.preference_set_attribute(&to, attribute, &value, sizeof value),
                       "setting attribute " + std::to_string(attribute) + " of a preference");
  }

  const CublasLtApi& cublaslt_;
  cublasLtHandle_t handle_;
  const MatmulProblem& problem_;
  cuda::MatmulDescriptors described_;
};

Result<std::vector<MatmulAlgorithm>> find_algorithms(const CublasLtApi& cublaslt,
                                                     cublasLtHandle_t handle,
                                                     const MatmulProblem& problem, size_t most) {
  KILN_ASSIGN_OR_RETURN(const auto lists, Search(cublaslt, handle, problem).run(most));
  size_t longest = 0;
  for (const Results& list : lists) longest = std::max(longest, list.size());
  std::vector<MatmulAlgorithm> algorithms;
  for (size_t rank = 0; rank < longest; ++rank) {
    for (const Results& list : lists) {
      if (rank >= list.size() || algorithms.size() >= most) continue;
      auto algorithm = cuda::describe_algorithm(cublaslt, handle, problem, list[rank].algo,
                                                list[rank].workspaceSize);
      if (!algorithm.ok()) return std::move(algorithm).error();
      const bool known =
          std::find(algorithms.begin(), algorithms.end(), *algorithm) != algorithms.end();
      if (!known) algorithms.push_back(*std::move(algorithm));
    }
  }
  if (algorithms.empty()) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt has no algorithm for the matmul"};
  }
  return algorithms;
}

}  // namespace

Result<std::vector<MatmulAlgorithm>> matmul_algorithms(cuda::CublasLtHandle& handle,
                                                       const MatmulProblem& problem, size_t most) {
  return handle.use([&](const CublasLtApi& cublaslt, cublasLtHandle_t lt) {
    return find_algorithms(cublaslt, lt, problem, most);
  });
}

}  // namespace kiln
