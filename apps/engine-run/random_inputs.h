// Inputs made up for a shape point, the same for the same seed on every machine.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/engine-run/named_array.h"
#include "engine/engine.h"
#include "formats/engine_file/plan.h"

namespace kiln::run {

struct Range {
  double low = 0, high = 1;  // both may occur
};

struct RandomOptions {
  std::string point;             // a shape point's name; "": chosen by `batch`
  std::optional<int64_t> batch;  // rows; none: as many as the point has
  uint64_t seed = 0;
  std::map<std::string, Range> ranges;  // by input
};

// "NAME=LOW:HIGH".
Result<std::pair<std::string, Range>> parse_range(std::string_view text);

// The point of that name; else the smallest bucket that holds `batch` rows; else the first point.
Result<ShapePointInfo> pick_point(const EngineInfo& info, const RandomOptions& options);

// The type of a point's tensor for a request of `rows` rows.
TensorType type_for_rows(const TensorInfo& tensor, int64_t point_batch, int64_t rows);

// Floats are normal (mean 0, deviation 1), integers and bools 0 or 1, unless a range is given: then
// uniform. Inputs that the engine was specialised on get their value from `plan`.
Result<std::vector<NamedArray>> random_inputs(const plan::Plan& plan, const EngineInfo& info,
                                              const RandomOptions& options);

}  // namespace kiln::run
