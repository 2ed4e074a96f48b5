// The small exported models of tests/models/tiny, imported at one shape point.
#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "builder/import/onnx/import.h"
#include "formats/onnx/read_model.h"

namespace kiln::test {

inline constexpr char kTinyFolder[] = "tests/models/tiny/";

inline nlohmann::json tiny_models() {
  return nlohmann::json::parse(std::ifstream(std::string(kTinyFolder) + "models.json"));
}

inline std::vector<std::string> tiny_model_names() {
  std::vector<std::string> names;
  const nlohmann::json models = tiny_models();
  for (const auto& [name, model] : models.items()) names.push_back(name);
  return names;
}

// Every symbolic extent as a number: `batch` rows, 16 tokens.
inline ShapePoint tiny_point(const nlohmann::json& model, int64_t batch) {
  ShapePoint point{.name = "b" + std::to_string(batch),
                   .batch = batch,
                   .shape_set = "",
                   .inputs = {},
                   .batch_axes = {},
                   .fixed_values = {}};
  for (const auto& input : model["inputs"]) {
    Shape shape;
    for (const auto& extent : input["shape"]) {
      shape.push_back(extent.is_number() ? extent.get<int64_t>() : extent == "batch" ? batch : 16);
    }
    point.inputs[input["name"]] = shape;
    point.batch_axes[input["name"]] = 0;
  }
  return point;
}

inline Result<ir::Graph> import_tiny(const std::string& name, int64_t batch) {
  KILN_ASSIGN_OR_RETURN(const auto model, onnx::read_model(kTinyFolder + name + ".onnx"));
  KILN_ASSIGN_OR_RETURN(auto imported,
                        onnx_import::import_onnx(model, tiny_point(tiny_models()[name], batch)));
  return std::move(imported.graph);
}

inline std::string parameter_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace kiln::test
