#include "engine/request/choose_point.h"

#include <cstring>
#include <string>

#include "engine/request/describe_points.h"

namespace kiln {
namespace {

// Why a point does not serve a request; the later in the list, the closer it came.
enum class Reason { kNone, kType, kShape, kRows, kFixedValue, kTooManyRows, kNoPadding };

// Plain numbers: most requests meet a few points that do not fit before the one that does, so words
// are made only when none fits.
struct Match {
  Reason reason = Reason::kNone;
  size_t point = 0;
  size_t input = 0;        // the one that does not fit
  int64_t rows = 0;        // of the request
  int64_t other_rows = 0;  // of that input, when inputs disagree
};

// Rows of an extent along the batch axis of a point; -1 if it is not a whole number of rows.
int64_t rows_of(int64_t extent, int64_t point_extent, int64_t batch) {
  const int64_t factor = point_extent / batch;
  return extent > 0 && extent % factor == 0 ? extent / factor : -1;
}

// Compares one input with a point's; match.rows is that of the inputs before it, 0 at first.
Reason match_input(const plan::IoTensor& io, const TensorType& found, const TensorType& expected,
                   int64_t batch, Match& match) {
  if (found.dtype != expected.dtype || found.rank() != expected.rank()) return Reason::kType;
  for (size_t axis = 0; axis < expected.shape.size(); ++axis) {
    const bool batched = batch > 0 && io.batch_axis == static_cast<int32_t>(axis);
    if (!batched) {
      if (found.shape[axis] != expected.shape[axis]) return Reason::kShape;
      continue;
    }
    match.other_rows = rows_of(found.shape[axis], expected.shape[axis], batch);
    if (match.other_rows < 0) return Reason::kShape;
    if (match.rows != 0 && match.rows != match.other_rows) return Reason::kRows;
    match.rows = match.other_rows;
  }
  return Reason::kNone;
}

bool has_value(const Tensor& tensor, const std::vector<std::byte>& value) {
  if (value.empty()) return true;
  return tensor.data != nullptr && tensor.memory == MemoryKind::kHost &&
         std::memcmp(tensor.data, value.data(), value.size()) == 0;
}

Match match_point(const plan::Plan& plan, size_t number, bool can_pad,
                  std::span<const Tensor* const> inputs) {
  const plan::ShapePoint& point = plan.points[number];
  Match match{.point = number};
  for (size_t i = 0; i < inputs.size(); ++i) {
    match.input = i;
    match.reason =
        match_input(plan.inputs[i], inputs[i]->type, point.inputs[i], point.batch, match);
    if (match.reason != Reason::kNone) return match;
  }
  for (const plan::FixedInput& fixed : point.fixed_inputs) {
    if (has_value(*inputs[fixed.input], fixed.value)) continue;
    match.input = fixed.input;
    match.reason = Reason::kFixedValue;
    return match;
  }
  if (match.rows == 0) match.rows = point.batch;  // no input grows with the batch
  if (match.rows > point.batch) match.reason = Reason::kTooManyRows;
  if (match.rows < point.batch && !can_pad) match.reason = Reason::kNoPadding;
  return match;
}

std::string explain(const plan::Plan& plan, const Match& match,
                    std::span<const Tensor* const> inputs) {
  const plan::ShapePoint& point = plan.points[match.point];
  const std::string rows = std::to_string(match.rows);
  const auto input = [&] { return "input '" + plan.inputs[match.input].name + "' "; };
  switch (match.reason) {
    case Reason::kRows:
      return input() + "has " + std::to_string(match.other_rows) + " rows, inputs before it have " +
             rows;
    case Reason::kFixedValue:
      return input() + "has another value than the engine was built for; shapes depend on it";
    case Reason::kTooManyRows:
      return "the request has " + rows +
             " rows, the largest bucket holds fewer; split the request or build with a larger "
             "--max-batch";
    case Reason::kNoPadding:
      return "the request has " + rows + " rows, no bucket has as many and rows may not be padded" +
             (plan.batch_padding_reason.empty() ? "" : " (" + plan.batch_padding_reason + ")") +
             "; build with --batches " + rows;
    default: {
      const int32_t batch_axis = point.batch > 0 ? plan.inputs[match.input].batch_axis : -1;
      return input() + "is " + to_string(inputs[match.input]->type) + ", expected " +
             describe_type(point.inputs[match.input], batch_axis, point.batch);
    }
  }
}

}  // namespace

Result<Choice> choose_point(const plan::Plan& plan, const std::vector<StagingLayout>& staging,
                            std::span<const Tensor* const> inputs) {
  bool found = false;
  Choice best;
  Match closest;
  for (size_t i = 0; i < plan.points.size(); ++i) {
    const Match match = match_point(plan, i, staging[i].possible, inputs);
    if (match.reason != Reason::kNone) {
      if (match.reason > closest.reason) closest = match;
      continue;
    }
    const int64_t batch = plan.points[i].batch;
    if (found && plan.points[best.point].batch <= batch) continue;
    found = true;
    best = {.point = i, .rows = match.rows, .padded = match.rows != batch};
  }
  if (found) return best;
  return Error{ErrorCode::kInvalidArgument,
               explain(plan, closest, inputs) + "; shape points: " + describe_points(plan)};
}

TensorType output_type(const plan::Plan& plan, const Choice& choice, size_t i) {
  const plan::ShapePoint& point = plan.points[choice.point];
  TensorType type = point.outputs[i];
  if (choice.padded && plan.outputs[i].batch_axis >= 0) {
    int64_t& extent = type.shape[static_cast<size_t>(plan.outputs[i].batch_axis)];
    extent = extent / point.batch * choice.rows;
  }
  return type;
}

}  // namespace kiln
