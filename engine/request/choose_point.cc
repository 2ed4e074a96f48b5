#include "engine/request/choose_point.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/request/describe_points.h"

namespace kiln {
namespace {

// Why a point does not serve a request; the later, the closer it came.
struct Mismatch {
  enum class Reason { kNone, kType, kShape, kRows, kFixedValue, kTooManyRows, kNoPadding };
  Reason reason = Reason::kNone;
  std::string text;
};
using Reason = Mismatch::Reason;

// Rows of an extent along the batch axis of a point; -1 if it is not a whole number of rows.
int64_t rows_of(int64_t extent, int64_t point_extent, int64_t batch) {
  const int64_t factor = point_extent / batch;
  return extent > 0 && extent % factor == 0 ? extent / factor : -1;
}

std::string found_expected(const plan::IoTensor& io, const TensorType& found,
                           const TensorType& expected, int64_t batch) {
  return "input '" + io.name + "' is " + to_string(found) + ", expected " +
         describe_type(expected, batch > 0 ? io.batch_axis : -1, batch);
}

// Compares one input with a point's; `rows` is that of the inputs before it, 0 at first.
Mismatch match_input(const plan::IoTensor& io, const TensorType& found, const TensorType& expected,
                     int64_t batch, int64_t& rows) {
  if (found.dtype != expected.dtype || found.rank() != expected.rank()) {
    return {Reason::kType, found_expected(io, found, expected, batch)};
  }
  for (size_t axis = 0; axis < expected.shape.size(); ++axis) {
    const bool batched = batch > 0 && io.batch_axis == static_cast<int32_t>(axis);
    if (!batched) {
      if (found.shape[axis] == expected.shape[axis]) continue;
      return {Reason::kShape, found_expected(io, found, expected, batch)};
    }
    const int64_t own = rows_of(found.shape[axis], expected.shape[axis], batch);
    if (own < 0) return {Reason::kShape, found_expected(io, found, expected, batch)};
    if (rows != 0 && rows != own) {
      return {Reason::kRows, "input '" + io.name + "' has " + std::to_string(own) +
                                 " rows, inputs before it have " + std::to_string(rows)};
    }
    rows = own;
  }
  return {};
}

Mismatch match_fixed_values(const plan::Plan& plan, const plan::ShapePoint& point,
                            std::span<const Tensor* const> inputs) {
  for (const plan::FixedInput& fixed : point.fixed_inputs) {
    const Tensor& given = *inputs[fixed.input];
    if (fixed.value.empty()) continue;
    if (given.data == nullptr || given.memory != MemoryKind::kHost ||
        std::memcmp(given.data, fixed.value.data(), fixed.value.size()) != 0) {
      return {Reason::kFixedValue, "input '" + plan.inputs[fixed.input].name +
                                       "' has another value than the engine was built for; shapes "
                                       "depend on it"};
    }
  }
  return {};
}

// Whether the point serves the request; `rows` becomes the request's rows.
Mismatch match_point(const plan::Plan& plan, const plan::ShapePoint& point, bool can_pad,
                     std::span<const Tensor* const> inputs, int64_t& rows) {
  rows = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Mismatch mismatch =
        match_input(plan.inputs[i], inputs[i]->type, point.inputs[i], point.batch, rows);
    if (mismatch.reason != Reason::kNone) return mismatch;
  }
  if (rows == 0) rows = point.batch;  // no input grows with the batch
  Mismatch mismatch = match_fixed_values(plan, point, inputs);
  if (mismatch.reason != Reason::kNone || rows == point.batch) return mismatch;
  const std::string asked = "the request has " + std::to_string(rows) + " rows, ";
  if (rows > point.batch) {
    return {Reason::kTooManyRows, asked +
                                      "the largest bucket holds fewer; split the request or "
                                      "build with a larger --max-batch"};
  }
  if (can_pad) return {};
  const std::string& reason = plan.batch_padding_reason;
  return {Reason::kNoPadding, asked + "no bucket has as many and rows may not be padded" +
                                  (reason.empty() ? "" : " (" + reason + ")") +
                                  "; build with --batches " + std::to_string(rows)};
}

}  // namespace

Result<Choice> choose_point(const plan::Plan& plan, const std::vector<StagingLayout>& staging,
                            std::span<const Tensor* const> inputs) {
  bool found = false;
  Choice best;
  Mismatch closest;
  for (size_t i = 0; i < plan.points.size(); ++i) {
    const plan::ShapePoint& point = plan.points[i];
    int64_t rows = 0;
    Mismatch mismatch = match_point(plan, point, staging[i].possible, inputs, rows);
    if (mismatch.reason != Reason::kNone) {
      if (mismatch.reason > closest.reason) closest = std::move(mismatch);
      continue;
    }
    if (found && plan.points[best.point].batch <= point.batch) continue;
    found = true;
    best = {.point = i, .rows = rows, .padded = rows != point.batch};
  }
  if (found) return best;
  return Error{ErrorCode::kInvalidArgument,
               closest.text + "; shape points: " + describe_points(plan)};
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
