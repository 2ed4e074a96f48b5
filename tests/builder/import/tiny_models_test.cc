// Exported models, imported and run one node at a time, agree with ONNX Runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "builder/import/onnx/constants.h"
#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/verify/reference.h"
#include "formats/npy/array_file.h"
#include "formats/onnx/read_model.h"

namespace kiln::onnx_import {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3, kAbsolute = 1e-4;

fs::path models_folder() {
  const char* folder = std::getenv("KILN_MODELS_DIR");
  return folder ? folder : "tests/models/tiny";
}

using Arrays = std::map<std::string, HostTensor>;

Arrays read_npz(const fs::path& path) {
  auto arrays = npy::read_arrays(path);
  EXPECT_TRUE(arrays.ok()) << path;
  Arrays result;
  if (!arrays.ok()) return result;
  for (const npy::Array& array : *arrays) result[array.name] = {array.type, array.data};
  return result;
}

// bert_dynamo.onnx -> bert.inputs.npz
fs::path inputs_file(const fs::path& model) {
  const std::string stem = model.stem().string();
  return model.parent_path() / (stem.substr(0, stem.rfind('_')) + ".inputs.npz");
}

fs::path outputs_file(const fs::path& model) {
  return model.parent_path() / (model.stem().string() + ".outputs.npz");
}

double worst_excess(const HostTensor& found, const HostTensor& expected) {
  const auto a = to_doubles(found), b = to_doubles(expected);
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return INFINITY;
    const double excess = std::abs(a[i] - b[i]) / (kAbsolute + kRelative * std::abs(b[i]));
    worst = std::max(worst, excess);
  }
  return worst;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(models_folder(), ignored)) {
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TinyModels : public testing::TestWithParam<std::string> {};

TEST_P(TinyModels, AgreeWithOnnxRuntime) {
  const fs::path path = models_folder() / (GetParam() + ".onnx");
  const auto model = onnx::read_model(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Arrays inputs = read_npz(inputs_file(path)), outputs = read_npz(outputs_file(path));
  BuildOptions options;
  for (const auto& [name, tensor] : inputs) options.shape_sets[""][name] = tensor.type.shape;
  const auto points = plan_shape_points(*model, options);
  ASSERT_TRUE(points.ok()) << points.error().message;
  ASSERT_EQ(points->size(), 1u);
  const auto imported = import_onnx(*model, points->front());
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto valid = imported->graph.verify();
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  std::vector<HostTensor> arguments;
  for (ir::ValueId id : imported->graph.inputs()) {
    arguments.push_back(inputs.at(imported->graph.value(id).name));
  }
  const auto found = run_reference(imported->graph, arguments);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), outputs.size());
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string& name = imported->graph.output_name(i);
    ASSERT_EQ((*found)[i].type, outputs.at(name).type) << name;
    EXPECT_LE(worst_excess((*found)[i], outputs.at(name)), 1.0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Exported, TinyModels, testing::ValuesIn(model_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& ch : name) {
                             if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace kiln::onnx_import
