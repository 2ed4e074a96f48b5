#include "builder/verify/verify_engine.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "builder/tactics/region_work.h"
#include "builder/verify/batch_rows.h"
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

const std::string kRandomValues = "random values";

// How often the builder makes up values: less often where loops make a run long. Counted in
// operations, so that equal builds check alike.
int64_t made_up_times(const ir::Graph& graph, int64_t usually) {
  constexpr uint64_t kManySteps = 300'000;
  return region_work(graph).steps > kManySteps ? usually - 1 : usually;
}

}  // namespace

// inputs[r] and outputs[r] belong to row r alone.
struct EngineVerifier::Rows {
  std::vector<std::vector<HostTensor>> inputs, outputs;
  std::vector<std::vector<double>> noise;  // by row and output
};

bool EngineVerifier::by_rows(const ShapePoint& point) const {
  return engine_.info().batch_padding && point.batch > 0;
}

Result<const ShapePointInfo*> EngineVerifier::find_point(const ShapePoint& point) const {
  for (const ShapePointInfo& info : engine_.info().points) {
    if (info.name == point.name) return &info;
  }
  return Error{ErrorCode::kInternal, "the engine has no shape point '" + point.name + "'"};
}

// What the builder makes up: rows of one batch share what has no batch axis.
std::vector<std::vector<HostTensor>> EngineVerifier::made_up_rows(const ir::Graph& graph,
                                                                  const ShapePoint& single) {
  auto known = fixed_inputs(graph, single);
  std::vector<std::vector<HostTensor>> rows;
  for (int64_t r = 0; r < made_up_times(graph, kDistinctRows); ++r) {
    rows.push_back(realistic_inputs(graph, static_cast<uint64_t>(r) + 1, known));
    for (size_t i = 0; i < known.size(); ++i) {
      const auto& name = graph.value(graph.inputs()[i]).name;
      if (!single.batch_axes.contains(name)) known[i] = rows[0][i];
    }
  }
  return rows;
}

Result<std::shared_ptr<const EngineVerifier::Rows>> EngineVerifier::answered_rows(
    const ShapePoint& point, const std::string& name,
    std::span<const std::vector<HostTensor>> given) {
  auto& shared = rows_[{point.shape_set, name}];
  if (shared) return shared;
  const ShapePoint single = with_rows(point, 1);
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(single));
  Rows rows;
  rows.inputs = given.empty() ? made_up_rows(graph, single)
                              : std::vector<std::vector<HostTensor>>(given.begin(), given.end());
  for (const auto& inputs : rows.inputs) {
    KILN_ASSIGN_OR_RETURN(auto outputs, run_reference(graph, inputs, reference_));
    KILN_ASSIGN_OR_RETURN(rows.noise.emplace_back(),
                          reference_noise(graph, inputs, outputs, reference_));
    rows.outputs.push_back(std::move(outputs));
  }
  shared = std::make_shared<const Rows>(std::move(rows));
  return shared;
}

// One run of the whole point, filled with rows by number.
struct EngineVerifier::RowOrder {
  std::string what;
  std::function<int64_t(int64_t)> row_at;
  int64_t poisoned = -1;  // the place of the batch that holds NaN instead; -1: none
};

Result<std::vector<HostTensor>> EngineVerifier::fill_point(const ShapePoint& point,
                                                           const Rows& rows,
                                                           const RowOrder& order) const {
  KILN_ASSIGN_OR_RETURN(const ShapePointInfo* info, find_point(point));
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < info->inputs.size(); ++i) {
    const int axis = info->inputs[i].batch_axis;
    std::vector<HostTensor> parts;
    for (int64_t n = 0; n < (axis < 0 ? 1 : point.batch); ++n) {
      const HostTensor& row = rows.inputs[static_cast<size_t>(order.row_at(n))][i];
      const bool poison = axis >= 0 && n == order.poisoned && is_float(row.type.dtype);
      KILN_ASSIGN_OR_RETURN(
          parts.emplace_back(),
          convert_tensor(poison ? filled_with_nan(row) : row, info->inputs[i].type.dtype));
    }
    inputs.push_back(axis < 0 ? parts.front() : stack_rows(parts, axis));
  }
  return inputs;
}

Result<> EngineVerifier::check_rows(const ShapePoint& point, const Rows& rows,
                                    const RowOrder& order, PointVerdict& verdict) const {
  KILN_ASSIGN_OR_RETURN(const ShapePointInfo* info, find_point(point));
  KILN_ASSIGN_OR_RETURN(auto inputs, fill_point(point, rows, order));
  KILN_ASSIGN_OR_RETURN(const auto outputs, run_engine(engine_, *info, inputs));
  report::Verification check{order.what, 0, 0, 0, 1, true, ""};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int axis = info->outputs[i].batch_axis;
    for (int64_t n = 0; n < (axis < 0 ? 1 : point.batch); ++n) {
      if (n == order.poisoned) continue;
      const HostTensor got = axis < 0 ? outputs[i] : take_row(outputs[i], axis, n, point.batch);
      const std::string label = "output '" + info->outputs[i].name + "', row " + std::to_string(n);
      const auto row = static_cast<size_t>(order.row_at(n));
      KILN_RETURN_IF_ERROR(
          check_output(got, rows.outputs[row][i], accuracy_, rows.noise[row][i], label, check));
    }
  }
  if (!check.passed && verdict.failing_inputs.empty()) verdict.failing_inputs = std::move(inputs);
  verdict.checks.push_back(std::move(check));
  return Ok();
}

Result<PointVerdict> EngineVerifier::verify(const ShapePoint& point) {
  return by_rows(point) ? verify_rows(point) : verify_whole(point);
}

Result<PointVerdict> EngineVerifier::verify_rows(const ShapePoint& point) {
  KILN_ASSIGN_OR_RETURN(const ShapePointInfo* info, find_point(point));
  KILN_ASSIGN_OR_RETURN(const auto rows, answered_rows(point, kRandomValues, {}));
  const auto distinct = static_cast<int64_t>(rows->inputs.size());
  const auto forward = [&](int64_t n) { return n % distinct; };
  const auto backward = [&](int64_t n) { return (point.batch - 1 - n) % distinct; };
  PointVerdict verdict;
  KILN_RETURN_IF_ERROR(check_rows(point, *rows, {"random rows", forward}, verdict));
  if (point.batch == 1) return verdict;
  KILN_RETURN_IF_ERROR(
      check_rows(point, *rows, {"the same rows in other company", backward}, verdict));
  const bool takes_nan = std::any_of(info->inputs.begin(), info->inputs.end(), [](const auto& in) {
    return in.batch_axis >= 0 && is_float(in.type.dtype);
  });
  if (takes_nan) {
    KILN_RETURN_IF_ERROR(
        check_rows(point, *rows, {"beside a row of NaN", forward, point.batch / 2}, verdict));
  }
  return verdict;
}

Result<PointVerdict> EngineVerifier::verify_whole(const ShapePoint& point) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(point));
  PointVerdict verdict;
  for (int64_t seed = 1; seed <= made_up_times(graph, 2); ++seed) {
    const auto inputs =
        realistic_inputs(graph, static_cast<uint64_t>(seed), fixed_inputs(graph, point));
    KILN_RETURN_IF_ERROR(check_whole(point, graph, kRandomValues, inputs, verdict));
  }
  return verdict;
}

Result<PointVerdict> EngineVerifier::verify_data(const ShapePoint& point, const UserData& data,
                                                 int64_t most_rows) {
  const std::string name = "verify data '" + data.file.filename().string() + "'";
  const ShapePoint shape = by_rows(point) ? with_rows(point, 1) : point;
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import_(shape));
  KILN_ASSIGN_OR_RETURN(const auto requests, user_requests(data, graph, shape, most_rows));
  PointVerdict verdict;
  if (!by_rows(point)) {
    for (const auto& request : requests) {
      KILN_RETURN_IF_ERROR(check_whole(point, graph, name, request, verdict));
    }
    return verdict;
  }
  KILN_ASSIGN_OR_RETURN(const auto rows, answered_rows(point, data.file.string(), requests));
  const auto distinct = static_cast<int64_t>(rows->inputs.size());
  for (int64_t first = 0; first < distinct; first += point.batch) {
    const auto onwards = [&](int64_t n) { return (first + n) % distinct; };
    KILN_RETURN_IF_ERROR(check_rows(point, *rows, {name, onwards}, verdict));
  }
  return verdict;
}

Result<> EngineVerifier::check_whole(const ShapePoint& point, const ir::Graph& graph,
                                     const std::string& name, std::span<const HostTensor> tensors,
                                     PointVerdict& verdict) const {
  KILN_ASSIGN_OR_RETURN(const ShapePointInfo* info, find_point(point));
  KILN_ASSIGN_OR_RETURN(const auto want, run_reference(graph, tensors, reference_));
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(inputs.emplace_back(),
                          convert_tensor(tensors[i], info->inputs[i].type.dtype));
  }
  KILN_ASSIGN_OR_RETURN(const auto got, run_engine(engine_, *info, inputs));
  KILN_ASSIGN_OR_RETURN(const auto noise, reference_noise(graph, tensors, want, reference_));
  report::Verification check{name, 0, 0, 0, 1, true, ""};
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string label = "output '" + info->outputs[i].name + "'";
    KILN_RETURN_IF_ERROR(check_output(got[i], want[i], accuracy_, noise[i], label, check));
  }
  if (!check.passed && verdict.failing_inputs.empty()) verdict.failing_inputs = std::move(inputs);
  verdict.checks.push_back(std::move(check));
  return Ok();
}

}  // namespace kiln
