#include "builder/verify/verify_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "builder/verify/batch_rows.h"
#include "builder/verify/compare.h"
#include "builder/verify/realistic_inputs.h"

namespace kiln {
namespace {

constexpr int64_t kDistinctRows = 3;

std::vector<Tensor> views(const std::vector<HostTensor>& tensors,
                          const std::vector<TensorInfo>& infos) {
  std::vector<Tensor> result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto* data = const_cast<std::byte*>(tensors[i].bytes.data());  // inputs are never written
    result.push_back({infos[i].name, tensors[i].type, data});
  }
  return result;
}

const ShapePointInfo* find_point(const EngineInfo& info, const std::string& name) {
  const auto found = std::find_if(info.points.begin(), info.points.end(),
                                  [&](const ShapePointInfo& p) { return p.name == name; });
  return found == info.points.end() ? nullptr : &*found;
}

// Runs the engine on these inputs; outputs are poisoned first.
Result<std::vector<HostTensor>> run_engine(const Engine& engine, const ShapePointInfo& point,
                                           const std::vector<HostTensor>& inputs) {
  constexpr std::byte kPoison{0xCB};
  std::vector<std::vector<std::byte>> blocks;
  std::vector<Tensor> outputs;
  for (const TensorInfo& info : point.outputs) {
    blocks.emplace_back(static_cast<size_t>(info.type.bytes()), kPoison);
    outputs.push_back({info.name, info.type, blocks.back().data()});
  }
  KILN_RETURN_IF_ERROR(engine.infer(views(inputs, point.inputs), outputs));
  std::vector<HostTensor> results;
  for (size_t i = 0; i < blocks.size(); ++i) {
    results.push_back({outputs[i].type, SharedBytes::take(std::move(blocks[i]))});
  }
  return results;
}

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

// By output: how far the reference moves when its inputs do by rounding, several times over, but
// never more than a hundredth of what the output holds: beyond that nothing would be verified.
Result<std::vector<double>> noise_of(const ir::Graph& graph, const std::vector<HostTensor>& inputs,
                                     const std::vector<HostTensor>& outputs,
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

// Adds one output row's comparison to a check.
Result<> check_row(const HostTensor& got, const HostTensor& want, const EngineAccuracy& accuracy,
                   double noise, const std::string& label, report::Verification& check) {
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

HostTensor filled_with_nan(const HostTensor& tensor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TensorType one{DType::kF32, {}};
  std::vector<std::byte> bytes(sizeof nan);
  std::memcpy(bytes.data(), &nan, sizeof nan);
  const HostTensor scalar{one, SharedBytes::take(std::move(bytes))};
  const TensorType row{DType::kF32, tensor.type.shape};
  auto wide = run_reference_op(ir::Broadcast{row.shape}, std::span(&scalar, 1), std::span(&row, 1));
  if (!wide.ok()) return tensor;
  auto narrow = convert_tensor(wide->front(), tensor.type.dtype);
  return narrow.ok() ? *narrow : tensor;
}

Error lost_point(const ShapePoint& point) {
  return {ErrorCode::kInternal, "the engine has no shape point '" + point.name + "'"};
}

}  // namespace

// inputs[r] and outputs[r] belong to row r alone.
struct EngineVerifier::Rows {
  std::vector<std::vector<HostTensor>> inputs, outputs;
  std::vector<std::vector<double>> noise;  // by row and output
};

ShapePoint single_row(const ShapePoint& point) {
  ShapePoint single = point;
  for (const auto& [name, axis] : point.batch_axes) {
    single.inputs[name][static_cast<size_t>(axis)] /= point.batch;
  }
  single.batch = 1;
  return single;
}

Result<std::shared_ptr<const EngineVerifier::Rows>> EngineVerifier::reference_rows(
    const ShapePoint& point) {
  if (const auto known = rows_.find(point.shape_set); known != rows_.end()) return known->second;
  const ShapePoint single = single_row(point);
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(single));
  auto known = fixed_inputs(graph, single);
  Rows rows;
  for (int64_t r = 0; r < kDistinctRows; ++r) {
    rows.inputs.push_back(realistic_inputs(graph, static_cast<uint64_t>(r) + 1, known));
    for (size_t i = 0; i < known.size(); ++i) {
      const auto& name = graph.value(graph.inputs()[i]).name;
      if (!point.batch_axes.contains(name)) known[i] = rows.inputs[0][i];
    }
    KILN_ASSIGN_OR_RETURN(auto outputs, run_reference(graph, rows.inputs.back(), reference_));
    KILN_ASSIGN_OR_RETURN(rows.noise.emplace_back(),
                          noise_of(graph, rows.inputs.back(), outputs, reference_));
    rows.outputs.push_back(std::move(outputs));
  }
  return rows_[point.shape_set] = std::make_shared<const Rows>(std::move(rows));
}

Result<PointVerdict> EngineVerifier::verify(const ShapePoint& point) {
  const bool by_rows = engine_.info().batch_padding && point.batch > 0;
  return by_rows ? verify_rows(point) : verify_whole(point);
}

Result<PointVerdict> EngineVerifier::verify_rows(const ShapePoint& point) {
  const ShapePointInfo* info = find_point(engine_.info(), point.name);
  if (!info) return lost_point(point);
  KILN_ASSIGN_OR_RETURN(const auto shared_rows, reference_rows(point));
  const Rows& rows = *shared_rows;
  const auto distinct = static_cast<int64_t>(rows.inputs.size());
  PointVerdict verdict;
  const auto run = [&](const char* what, const auto& row_at, int64_t poisoned) -> Result<> {
    report::Verification check{what, 0, 0, 0, 1, true, ""};
    std::vector<HostTensor> inputs;
    for (size_t i = 0; i < info->inputs.size(); ++i) {
      const int axis = info->inputs[i].batch_axis;
      std::vector<HostTensor> parts;
      for (int64_t n = 0; n < (axis < 0 ? 1 : point.batch); ++n) {
        const HostTensor& row = rows.inputs[static_cast<size_t>(row_at(n))][i];
        const bool poison = axis >= 0 && n == poisoned && is_float(row.type.dtype);
        KILN_ASSIGN_OR_RETURN(
            parts.emplace_back(),
            convert_tensor(poison ? filled_with_nan(row) : row, info->inputs[i].type.dtype));
      }
      inputs.push_back(axis < 0 ? parts.front() : stack_rows(parts, axis));
    }
    KILN_ASSIGN_OR_RETURN(const auto outputs, run_engine(engine_, *info, inputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int axis = info->outputs[i].batch_axis;
      for (int64_t n = 0; n < (axis < 0 ? 1 : point.batch); ++n) {
        if (n == poisoned) continue;
        const HostTensor got = axis < 0 ? outputs[i] : take_row(outputs[i], axis, n, point.batch);
        const std::string label =
            "output '" + info->outputs[i].name + "', row " + std::to_string(n);
        const auto row = static_cast<size_t>(row_at(n));
        KILN_RETURN_IF_ERROR(
            check_row(got, rows.outputs[row][i], accuracy_, rows.noise[row][i], label, check));
      }
    }
    if (!check.passed && verdict.failing_inputs.empty()) verdict.failing_inputs = inputs;
    verdict.checks.push_back(std::move(check));
    return Ok();
  };
  const auto forward = [&](int64_t n) { return n % distinct; };
  const auto backward = [&](int64_t n) { return (point.batch - 1 - n) % distinct; };
  KILN_RETURN_IF_ERROR(run("random rows", forward, -1));
  if (point.batch == 1) return verdict;
  KILN_RETURN_IF_ERROR(run("the same rows in other company", backward, -1));
  const bool takes_nan = std::any_of(info->inputs.begin(), info->inputs.end(), [](const auto& in) {
    return in.batch_axis >= 0 && is_float(in.type.dtype);
  });
  if (takes_nan) KILN_RETURN_IF_ERROR(run("beside a row of NaN", forward, point.batch / 2));
  return verdict;
}

Result<PointVerdict> EngineVerifier::verify_whole(const ShapePoint& point) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(point));
  PointVerdict verdict;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const auto inputs = realistic_inputs(graph, seed, fixed_inputs(graph, point));
    KILN_ASSIGN_OR_RETURN(auto one, verify_data(point, "random values", inputs));
    verdict.checks.insert(verdict.checks.end(), one.checks.begin(), one.checks.end());
    if (verdict.failing_inputs.empty()) verdict.failing_inputs = std::move(one.failing_inputs);
  }
  return verdict;
}

Result<PointVerdict> EngineVerifier::verify_data(const ShapePoint& point, const std::string& name,
                                                 std::span<const HostTensor> tensors) {
  const ShapePointInfo* info = find_point(engine_.info(), point.name);
  if (!info) return lost_point(point);
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(point));
  KILN_ASSIGN_OR_RETURN(const auto want, run_reference(graph, tensors, reference_));
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(inputs.emplace_back(),
                          convert_tensor(tensors[i], info->inputs[i].type.dtype));
  }
  KILN_ASSIGN_OR_RETURN(const auto got, run_engine(engine_, *info, inputs));
  KILN_ASSIGN_OR_RETURN(const auto noise,
                        noise_of(graph, {tensors.begin(), tensors.end()}, want, reference_));
  report::Verification check{name, 0, 0, 0, 1, true, ""};
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string label = "output '" + info->outputs[i].name + "'";
    KILN_RETURN_IF_ERROR(check_row(got[i], want[i], accuracy_, noise[i], label, check));
  }
  PointVerdict verdict;
  if (!check.passed) verdict.failing_inputs = std::move(inputs);
  verdict.checks.push_back(std::move(check));
  return verdict;
}

}  // namespace kiln
