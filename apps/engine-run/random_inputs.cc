#include "apps/engine-run/random_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

namespace kiln::run {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

template <class T>
std::string list_names(const std::vector<T>& named) {
  std::string text;
  for (const T& thing : named) text += (text.empty() ? "'" : ", '") + thing.name + "'";
  return text.empty() ? "none" : text;
}

// The distributions of <random> differ between standard libraries; its engines do not.
class Draws {
 public:
  Draws(uint64_t seed, size_t input) : engine_(seed * 0x9E3779B97F4A7C15u + input) {}

  // In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  double normal() {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

double draw(Draws& draws, DType dtype, const Range* range) {
  if (is_float(dtype)) {
    return range == nullptr ? draws.normal()
                            : range->low + draws.uniform() * (range->high - range->low);
  }
  const Range whole = range == nullptr ? Range{} : *range;
  return whole.low + std::floor(draws.uniform() * (whole.high - whole.low + 1));
}

Result<NamedArray> random_array(const std::string& name, const TensorType& type, Draws draws,
                                const Range* range) {
  KILN_ASSIGN_OR_RETURN(auto array, make_array(name, type));
  // In pieces of an even count, so that 4-bit pieces begin at whole bytes.
  constexpr int64_t kPiece = 1 << 16;
  const int64_t count = type.elements();
  std::vector<double> values;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    values.clear();
    for (int64_t i = 0; i < length; ++i) values.push_back(draw(draws, type.dtype, range));
    KILN_ASSIGN_OR_RETURN(const auto bytes,
                          cast_values({DType::kF64, {length}}, values.data(), type.dtype));
    std::memcpy(array.bytes.data() + begin * bits_of(type.dtype) / 8, bytes.data(), bytes.size());
  }
  return array;
}

const std::vector<std::byte>* fixed_value(const plan::ShapePoint& point, size_t input) {
  for (const plan::FixedInput& fixed : point.fixed_inputs) {
    if (fixed.input == input) return &fixed.value;
  }
  return nullptr;
}

Result<> check_range_names(const ShapePointInfo& point,
                           const std::map<std::string, Range>& ranges) {
  for (const auto& [name, range] : ranges) {
    if (std::none_of(point.inputs.begin(), point.inputs.end(),
                     [&](const TensorInfo& input) { return input.name == name; })) {
      return invalid("--range: no input '" + name + "', the inputs are " +
                     list_names(point.inputs));
    }
  }
  return Ok();
}

}  // namespace

Result<std::pair<std::string, Range>> parse_range(std::string_view text) {
  const size_t equals = text.rfind('='), colon = text.rfind(':');
  Range range;
  const auto number = [](std::string_view digits, double& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value);
  };
  if (equals == std::string_view::npos || equals == 0 || colon == std::string_view::npos ||
      colon < equals || !number(text.substr(equals + 1, colon - equals - 1), range.low) ||
      !number(text.substr(colon + 1), range.high) || range.low > range.high) {
    return invalid("--range: found '" + std::string(text) +
                   "', expected NAME=LOW:HIGH with LOW <= HIGH");
  }
  return std::pair{std::string(text.substr(0, equals)), range};
}

Result<ShapePointInfo> pick_point(const EngineInfo& info, const RandomOptions& options) {
  const ShapePointInfo* best = nullptr;
  for (const ShapePointInfo& point : info.points) {
    if (!options.point.empty()) {
      if (point.name == options.point) return point;
      continue;
    }
    if (!options.batch) return point;
    const bool holds = point.batch >= *options.batch;
    if (holds && (best == nullptr || point.batch < best->batch)) best = &point;
  }
  if (best != nullptr) return *best;
  if (!options.point.empty()) {
    return invalid("no shape point '" + options.point + "', the points are " +
                   list_names(info.points));
  }
  if (!options.batch) return invalid("the engine has no shape point");
  return invalid("--batch " + std::to_string(*options.batch) +
                 ": no bucket holds so many rows, the points are " + list_names(info.points));
}

TensorType type_for_rows(const TensorInfo& tensor, int64_t point_batch, int64_t rows) {
  TensorType type = tensor.type;
  if (point_batch > 0 && tensor.batch_axis >= 0) {
    int64_t& extent = type.shape[static_cast<size_t>(tensor.batch_axis)];
    extent = extent / point_batch * rows;
  }
  return type;
}

Result<std::vector<NamedArray>> random_inputs(const plan::Plan& plan, const EngineInfo& info,
                                              const RandomOptions& options) {
  KILN_ASSIGN_OR_RETURN(const ShapePointInfo point, pick_point(info, options));
  KILN_RETURN_IF_ERROR(check_range_names(point, options.ranges));
  const int64_t rows = options.batch.value_or(point.batch);
  if (point.batch > 0 && rows > point.batch) {
    return invalid("--batch " + std::to_string(rows) + ": shape point '" + point.name + "' holds " +
                   std::to_string(point.batch) + " rows");
  }
  const auto planned = std::find_if(plan.points.begin(), plan.points.end(),
                                    [&](const auto& p) { return p.name == point.name; });
  std::vector<NamedArray> arrays;
  for (size_t i = 0; i < point.inputs.size(); ++i) {
    const TensorInfo& input = point.inputs[i];
    const TensorType type = type_for_rows(input, point.batch, rows);
    const auto range = options.ranges.find(input.name);
    KILN_ASSIGN_OR_RETURN(auto array,
                          random_array(input.name, type, Draws(options.seed, i),
                                       range == options.ranges.end() ? nullptr : &range->second));
    const auto* value = planned == plan.points.end() ? nullptr : fixed_value(*planned, i);
    if (value != nullptr && value->size() == array.bytes.size()) array.bytes = *value;
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace kiln::run
