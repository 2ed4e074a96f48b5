#include "builder/import/onnx/shape_points.h"

#include <algorithm>
#include <set>

namespace kiln::onnx_import {
namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kBatch = -1;  // stands for the batch extent in a shape

Error reject(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Inputs that callers feed: those without an initializer.
std::vector<onnx::ValueInfo> fed_inputs(const onnx::Graph& graph) {
  std::set<std::string> defaults;
  for (const onnx::Tensor& tensor : graph.initializers) defaults.insert(tensor.name);
  std::vector<onnx::ValueInfo> inputs;
  for (const onnx::ValueInfo& input : graph.inputs) {
    if (!defaults.count(input.name)) inputs.push_back(input);
  }
  return inputs;
}

// What one shape set says about the model's dimensions.
struct Known {
  std::map<std::string, Shape> shapes;     // by input; kBatch marks the batch
  std::map<std::string, int64_t> symbols;  // extents of symbolic dimensions, or kBatch
  bool marks_batch = false;
};

Result<> check_given(const onnx::ValueInfo& input, const Shape& shape) {
  const std::string where = "--shapes for input '" + input.name + "'";
  for (int64_t extent : shape) {
    if (extent < kBatch) return reject(where + " has the extent " + std::to_string(extent));
  }
  if (!input.shape) return Ok();
  if (shape.size() != input.shape->size()) {
    return reject(where + " has rank " + std::to_string(shape.size()) + ", the model declares " +
                  input.type_text);
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto& declared = (*input.shape)[i].extent;
    if (declared && *declared != shape[i]) {
      return reject(where + " has " + (shape[i] == kBatch ? "B" : std::to_string(shape[i])) +
                    " at axis " + std::to_string(i) + ", the model declares " + input.type_text);
    }
  }
  return Ok();
}

Result<Known> read_set(const std::vector<onnx::ValueInfo>& inputs, const ShapeSet& set,
                       const std::map<std::string, FixedValue>& fixed) {
  Known known;
  known.shapes = set;
  for (const auto& [name, value] : fixed) known.shapes.try_emplace(name, value.type.shape);
  for (const auto& [name, shape] : known.shapes) {
    const auto it = std::find_if(inputs.begin(), inputs.end(),
                                 [&, n = name](const auto& input) { return input.name == n; });
    if (it == inputs.end()) return reject("--shapes names '" + name + "', which is no input");
    KILN_RETURN_IF_ERROR(check_given(*it, shape));
    known.marks_batch |= std::count(shape.begin(), shape.end(), kBatch) > 0;
    for (size_t i = 0; it->shape && i < shape.size(); ++i) {
      const std::string& symbol = (*it->shape)[i].symbol;
      if (symbol.empty() || (*it->shape)[i].extent) continue;
      const auto [entry, is_new] = known.symbols.try_emplace(symbol, shape[i]);
      if (!is_new && entry->second != shape[i]) {
        return reject("--shapes gives the dimension '" + symbol + "' two extents, " +
                      std::to_string(entry->second) + " and " + std::to_string(shape[i]));
      }
    }
  }
  return known;
}

// Without B in --shapes, the first leading dimension that nothing settles is the batch.
void find_batch(const std::vector<onnx::ValueInfo>& inputs, Known& known) {
  if (known.marks_batch) return;
  for (const onnx::ValueInfo& input : inputs) {
    if (known.shapes.count(input.name) || !input.shape || input.shape->empty()) continue;
    const onnx::Dim& leading = input.shape->front();
    if (leading.extent || known.symbols.count(leading.symbol)) continue;
    known.marks_batch = true;
    if (!leading.symbol.empty()) known.symbols[leading.symbol] = kBatch;
    return;
  }
}

Error unknown_dimension(const onnx::ValueInfo& input, size_t axis) {
  std::string example;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    const auto& extent = (*input.shape)[i].extent;
    example += (i ? "x" : "") + (extent ? std::to_string(*extent) : i == 0 ? "B" : "N");
  }
  const std::string& symbol = (*input.shape)[axis].symbol;
  return reject("input '" + input.name + "' has no extent for " +
                (symbol.empty() ? "its axis " : "'" + symbol + "', its axis ") +
                std::to_string(axis) + "; give it with --shapes '" + input.name + ":" + example +
                "', a number for each N (B is the batch)");
}

// The input's shape with kBatch where the batch goes.
Result<Shape> shape_of(const onnx::ValueInfo& input, const Known& known) {
  const auto given = known.shapes.find(input.name);
  if (given != known.shapes.end()) return given->second;
  if (!input.shape) {
    return reject("input '" + input.name + "' declares no shape; give it with --shapes '" +
                  input.name + ":...'");
  }
  Shape shape;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    const onnx::Dim& dim = (*input.shape)[i];
    const auto symbol = known.symbols.find(dim.symbol);
    if (dim.extent) {
      shape.push_back(*dim.extent);
    } else if (!dim.symbol.empty() && symbol != known.symbols.end()) {
      shape.push_back(symbol->second);
    } else if (dim.symbol.empty() && i == 0 && known.marks_batch) {
      shape.push_back(kBatch);
    } else {
      return unknown_dimension(input, i);
    }
  }
  return shape;
}

Result<std::vector<int64_t>> buckets(const BuildOptions& options) {
  std::vector<int64_t> sizes = options.batches;
  if (sizes.empty()) {
    for (int64_t size = 1; size < options.max_batch && size <= kMaxBatch; size *= 2) {
      sizes.push_back(size);
    }
    sizes.push_back(std::max<int64_t>(options.max_batch, 1));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.front() < 1 || sizes.back() > kMaxBatch) {
    return reject("batches are " + std::to_string(sizes.front()) + " to " +
                  std::to_string(sizes.back()) + ", expected 1 to " + std::to_string(kMaxBatch));
  }
  return sizes;
}

ShapePoint instantiate(const std::map<std::string, Shape>& shapes, const std::string& set,
                       int64_t batch) {
  ShapePoint point;
  point.batch = batch;
  point.shape_set = set;
  point.name = batch > 0 ? "b" + std::to_string(batch) : set.empty() ? "static" : set;
  if (batch > 0 && !set.empty()) point.name += "/" + set;
  for (const auto& [name, pattern] : shapes) {
    Shape shape = pattern;
    const auto axis = std::find(shape.begin(), shape.end(), kBatch);
    if (axis != shape.end()) point.batch_axes[name] = static_cast<int>(axis - shape.begin());
    std::replace(shape.begin(), shape.end(), kBatch, batch);
    point.inputs[name] = std::move(shape);
  }
  return point;
}

}  // namespace

Result<std::vector<ShapePoint>> plan_shape_points(const onnx::Model& model,
                                                  const BuildOptions& options) {
  const auto inputs = fed_inputs(model.graph);
  KILN_ASSIGN_OR_RETURN(const auto batches, buckets(options));
  auto sets = options.shape_sets;
  for (const auto& [name, values] : options.fixed_values) sets.try_emplace(name);
  if (sets.empty()) sets.try_emplace("");
  std::vector<ShapePoint> points;
  bool any_batch = false;
  for (const auto& [name, set] : sets) {
    const auto it = options.fixed_values.find(name);
    const auto fixed =
        it == options.fixed_values.end() ? std::map<std::string, FixedValue>() : it->second;
    KILN_ASSIGN_OR_RETURN(Known known, read_set(inputs, set, fixed));
    find_batch(inputs, known);
    any_batch |= known.marks_batch;
    std::map<std::string, Shape> shapes;
    for (const onnx::ValueInfo& input : inputs) {
      KILN_ASSIGN_OR_RETURN(shapes[input.name], shape_of(input, known));
    }
    for (int64_t batch : known.marks_batch ? batches : std::vector<int64_t>{0}) {
      points.push_back(instantiate(shapes, name, batch));
      points.back().fixed_values = fixed;
    }
  }
  if (!any_batch && (options.max_batch > 0 || !options.batches.empty())) {
    return reject(
        "no input has a batch dimension; leave --max-batch and --batches out, or mark "
        "the dimension with B in --shapes");
  }
  return points;
}

}  // namespace kiln::onnx_import
