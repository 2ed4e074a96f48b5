#include "builder/verify/check_output.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "builder/tactics/accuracy.h"
#include "builder/verify/compare.h"

namespace kiln {
namespace {

// Depth amplifies the rounding that separates two right answers: ten times what one region may do,
// and what the model itself makes of rounding.
AccuracyPolicy end_to_end(DType dtype, double noise) {
  AccuracyPolicy policy = accuracy_for(dtype);
  policy.atol *= 10;
  policy.noise = noise;
  return policy;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  size_t finite = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++finite;
  }
  return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
}

// Float inputs moved by about one part in four million, up or down: a few units in the last place.
HostTensor nudged(const HostTensor& tensor) {
  if (tensor.type.dtype != DType::kF32) return tensor;
  std::vector<float> values(static_cast<size_t>(tensor.type.elements()));
  if (values.empty()) return tensor;
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
  constexpr float kNudge = 0x1p-22F;
  std::minstd_rand random(1);
  for (float& value : values) value *= random() & 0x100 ? 1 + kNudge : 1 - kNudge;
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {tensor.type, SharedBytes::take(std::move(bytes))};
}

}  // namespace

Result<std::vector<double>> reference_noise(const ir::Graph& graph,
                                            std::span<const HostTensor> inputs,
                                            std::span<const HostTensor> outputs,
                                            const ReferenceOptions& options) {
  constexpr double kTimes = 8, kMostOfOutput = 0.01;
  std::vector<HostTensor> moved;
  for (const HostTensor& tensor : inputs) moved.push_back(nudged(tensor));
  KILN_ASSIGN_OR_RETURN(const auto others, run_reference(graph, moved, options));
  std::vector<double> noise;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = outputs[i].type;
    const auto a = to_f64(type, outputs[i].bytes.data()), b = to_f64(type, others[i].bytes.data());
    double most = 0;
    for (size_t k = 0; k < a.size() && is_float(type.dtype); ++k) {
      const double moved_by = std::abs(a[k] - b[k]);
      if (std::isfinite(moved_by)) most = std::max(most, moved_by);
    }
    noise.push_back(std::min(kTimes * most, kMostOfOutput * root_mean_square(a)));
  }
  return noise;
}

Result<> check_output(const HostTensor& got, const HostTensor& want, const EngineAccuracy& accuracy,
                      double noise, const std::string& label, report::Verification& check) {
  if (got.type.shape != want.type.shape) {
    return Error{ErrorCode::kInternal, label + " is " + to_string(got.type) + ", the reference's " +
                                           to_string(want.type) + "; please report this"};
  }
  KILN_ASSIGN_OR_RETURN(const HostTensor wanted, convert_tensor(want, got.type.dtype));
  const bool is_integer = !is_float(got.type.dtype);
  const Comparison result =
      compare(got.type, got.bytes.data(), wanted.bytes.data(), end_to_end(got.type.dtype, noise));
  const double cosine = is_integer ? 1 : cosine_of(got, wanted);
  check.max_abs_error = std::max(check.max_abs_error, result.max_abs_error);
  check.max_rel_error = std::max(check.max_rel_error, result.max_rel_error);
  check.min_cosine = std::min(check.min_cosine, cosine);
  ++check.rows;
  // Narrow precisions may pick another class where two are nearly equal: integers do not fail them.
  const bool passed =
      accuracy.min_cosine > 0 ? is_integer || cosine >= accuracy.min_cosine : result.passed;
  if (passed || !check.passed) return Ok();
  check.passed = false;
  check.detail = label + ": " + result.worst;
  if (accuracy.min_cosine > 0) check.detail += ", cosine " + std::to_string(cosine);
  return Ok();
}

}  // namespace kiln
