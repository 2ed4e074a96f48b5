#include "engine/cuda/matmul/algorithm.h"

#include <charconv>
#include <cstring>

#include "engine/cuda/matmul/descriptors.h"

namespace kiln::cuda {
namespace {

// In the order of cublasLtMatmulAlgoConfigAttributes_t; "w" and "v" follow.
constexpr std::string_view kLetters = "atkrscgil";
static_assert(kLetters.size() == MatmulAlgorithm::kFields);

size_t bytes_of(size_t field) {
  return field == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                 field == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID
             ? 2
             : 4;
}

// Takes "<letter><number>" and the dot behind it off the text.
template <class T>
bool take(std::string_view& text, char letter, int base, T& number) {
  if (text.empty() || text[0] != letter) return false;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + 1, end, number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(at - text.data()));
  if (text.empty()) return true;
  if (text[0] != '.') return false;
  text.remove_prefix(1);
  return !text.empty();
}

Result<uint32_t> read_field(const CublasLtApi& cublaslt, const cublasLtMatmulAlgo_t& algorithm,
                            size_t field) {
  uint32_t value = 0;
  uint16_t half = 0;
  const bool is_half = bytes_of(field) == 2;
  size_t written = 0;
  KILN_RETURN_IF_ERROR(
      check(cublaslt,
            cublaslt.algo_config_get_attribute(
                &algorithm, static_cast<cublasLtMatmulAlgoConfigAttributes_t>(field),
                is_half ? static_cast<void*>(&half) : &value, bytes_of(field), &written),
            "reading field " + std::to_string(field) + " of cuBLASLt's algorithm"));
  return is_half ? half : value;
}

Result<> write_field(const CublasLtApi& cublaslt, cublasLtMatmulAlgo_t& algorithm, size_t field,
                     uint32_t value) {
  const auto half = static_cast<uint16_t>(value);
  const bool is_half = bytes_of(field) == 2;
  const std::string name = "field " + std::to_string(field) + " of cuBLASLt's algorithm";
  if (is_half && half != value) {
    return Error{ErrorCode::kUnsupported,
                 name + " is " + std::to_string(value) + ", expected at most 65535"};
  }
  return check(cublaslt,
               cublaslt.algo_config_set_attribute(
                   &algorithm, static_cast<cublasLtMatmulAlgoConfigAttributes_t>(field),
                   is_half ? static_cast<const void*>(&half) : &value, bytes_of(field)),
               "setting " + name + " to " + std::to_string(value));
}

// Sets only what differs from the algorithm's defaults: not every algorithm takes every field.
Result<cublasLtMatmulAlgo_t> rebuild(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                     const MatmulProblem& p, const MatmulAlgorithm& algorithm) {
  const cudaDataType_t operand = data_type_of(p.operand_dtype);
  const cudaDataType_t addend = data_type_of(addend_dtype(p)),
                       result = data_type_of(p.result_dtype);
  cublasLtMatmulAlgo_t made = {};
  KILN_RETURN_IF_ERROR(check(
      cublaslt,
      cublaslt.algo_init(handle, compute_type_of(p.compute), scale_type_of(p.compute), operand,
                         operand, addend, result, static_cast<int>(algorithm.config[0]), &made),
      "making cuBLASLt's algorithm " + std::to_string(algorithm.config[0])));
  for (size_t field = 1; field < MatmulAlgorithm::kFields; ++field) {
    KILN_ASSIGN_OR_RETURN(const uint32_t value, read_field(cublaslt, made, field));
    if (value == algorithm.config[field]) continue;
    KILN_RETURN_IF_ERROR(write_field(cublaslt, made, field, algorithm.config[field]));
  }
  return made;
}

}  // namespace

std::string to_string(const MatmulAlgorithm& algorithm) {
  std::string text;
  for (size_t i = 0; i < kLetters.size(); ++i) {
    text += kLetters[i] + std::to_string(algorithm.config[i]) + ".";
  }
  text += "w" + std::to_string(algorithm.workspace_bytes);
  text += ".v" + std::to_string(algorithm.version);
  if (!algorithm.opaque) return text;
  for (uint64_t word : *algorithm.opaque) {
    char digits[17];
    const auto end = std::to_chars(digits, digits + sizeof digits, word, 16);
    text += ".x" + std::string(digits, end.ptr);
  }
  return text;
}

std::optional<MatmulAlgorithm> parse_matmul_algorithm(std::string_view text) {
  const std::string_view whole = text;
  MatmulAlgorithm algorithm;
  for (size_t i = 0; i < kLetters.size(); ++i) {
    if (!take(text, kLetters[i], 10, algorithm.config[i])) return std::nullopt;
  }
  if (!take(text, 'w', 10, algorithm.workspace_bytes)) return std::nullopt;
  if (!take(text, 'v', 10, algorithm.version)) return std::nullopt;
  if (!text.empty()) {
    algorithm.opaque.emplace();
    for (uint64_t& word : *algorithm.opaque) {
      if (!take(text, 'x', 16, word)) return std::nullopt;
    }
  }
  // One text for each algorithm: no leading zeros, nothing left over.
  if (to_string(algorithm) != whole) return std::nullopt;
  return algorithm;
}

Result<cublasLtMatmulAlgo_t> make_algorithm(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                            const MatmulProblem& problem,
                                            const MatmulAlgorithm& algorithm) {
  if (!algorithm.opaque || algorithm.version != cublaslt.get_version()) {
    return rebuild(cublaslt, handle, problem, algorithm);
  }
  cublasLtMatmulAlgo_t made = {};
  std::memcpy(&made, algorithm.opaque->data(), sizeof made);
  for (size_t field = 0; field < MatmulAlgorithm::kFields; ++field) {
    KILN_ASSIGN_OR_RETURN(const uint32_t value, read_field(cublaslt, made, field));
    if (value == algorithm.config[field]) continue;
    return Error{ErrorCode::kCorruptData, "matmul: field " + std::to_string(field) +
                                              " of the algorithm is " +
                                              std::to_string(algorithm.config[field]) +
                                              ", its opaque words say " + std::to_string(value)};
  }
  return made;
}

Result<MatmulAlgorithm> describe_algorithm(const CublasLtApi& cublaslt, cublasLtHandle_t handle,
                                           const MatmulProblem& problem,
                                           const cublasLtMatmulAlgo_t& chosen,
                                           uint64_t workspace_bytes) {
  MatmulAlgorithm algorithm;
  algorithm.workspace_bytes = workspace_bytes;
  algorithm.version = cublaslt.get_version();
  for (size_t field = 0; field < MatmulAlgorithm::kFields; ++field) {
    KILN_ASSIGN_OR_RETURN(algorithm.config[field], read_field(cublaslt, chosen, field));
  }
  const auto again = rebuild(cublaslt, handle, problem, algorithm);
  if (again.ok() && std::memcmp(&*again, &chosen, sizeof chosen) == 0) return algorithm;
  static_assert(sizeof chosen == sizeof(*algorithm.opaque));
  std::memcpy(algorithm.opaque.emplace().data(), &chosen, sizeof chosen);
  return algorithm;
}

}  // namespace kiln::cuda
