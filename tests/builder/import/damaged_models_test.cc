// Models that parse and are wrong: every attribute, constant and input of the conformance cases'
// nodes damaged in turn. Import gives an error or a graph that is sound, runs and goes through the
// pipeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#include "builder/import/onnx/import.h"
#include "builder/import/onnx/shape_points.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "formats/onnx/read_model.h"
#include "tests/builder/random_tensors.h"
#include "tests/environment.h"

namespace kiln::onnx_import {
namespace {

constexpr int64_t kIntegers[] = {-1,
                                 0,
                                 1,
                                 7,
                                 int64_t{1} << 31,
                                 int64_t{1} << 40,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
constexpr float kFloats[] = {-1, 0, 1e30f, std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};

bool is_small(const ir::Graph& graph) {
  int64_t elements = 0;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const int64_t count = graph.type(ir::ValueId{i}).elements();
    if (count > (1 << 16) - elements) return false;
    elements += count;
  }
  return true;
}

bool may_run_for_ever(const onnx::Model& model) {
  return std::ranges::any_of(model.graph.nodes,
                             [](const onnx::Node& node) { return node.op_type == "Loop"; });
}

void import_and_run(const onnx::Model& model) {
  const auto points = plan_shape_points(model, {});
  if (!points.ok()) return;
  const auto imported = import_onnx(model, points->front());
  if (!imported.ok()) return;
  const auto valid = imported->graph.verify();
  EXPECT_TRUE(valid.ok()) << valid.error().message;
  if (!valid.ok() || may_run_for_ever(model) || !is_small(imported->graph)) return;
  (void)run_reference(imported->graph, test::random_inputs(imported->graph, 1),
                      {.max_value_bytes = 1 << 20});
  ir::Graph graph = imported->graph;
  PassContext context;
  const auto passed = run_passes(graph, default_pipeline(), context);
  EXPECT_TRUE(passed.ok() || passed.error().code != ErrorCode::kInternal) << passed.error().message;
}

// Calls `use` with a part of the model damaged in every way, and puts it back.
class Damage {
 public:
  explicit Damage(std::function<void()> use) : use_(std::move(use)) {}

  void node(onnx::Node& node) const {
    for (onnx::Attribute& attribute : node.attributes) {
      std::visit([&](auto& typed) { value(typed); }, attribute.value);
    }
    for (size_t i = 0; i < node.attributes.size(); ++i) {
      with(node,
           [&] { node.attributes.erase(node.attributes.begin() + static_cast<ptrdiff_t>(i)); });
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      with(node, [&] { node.inputs[i] = ""; });
      with(node, [&] { node.inputs[i] = node.inputs[i == 0 ? node.inputs.size() - 1 : 0]; });
      with(node, [&] { node.inputs.resize(i); });
    }
    with(node, [&] { node.outputs.emplace_back("one_too_many"); });
  }

  void input(onnx::ValueInfo& input) const {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kBool, DType::kU8}) {
      with(input, [&] { input.dtype = dtype; });
    }
    if (!input.shape) return;
    for (size_t i = 0; i < input.shape->size(); ++i) {
      for (int64_t extent : {0, 1, 5}) {
        with(input, [&] { (*input.shape)[i] = {extent, ""}; });
      }
    }
    with(input, [&] { input.shape->emplace_back(onnx::Dim{2, ""}); });
    with(input, [&] { input.shape->resize(input.shape->size() / 2); });
  }

  // Small lists of integers say shapes, axes, indices and counts.
  void value(onnx::Tensor& tensor) const {
    const onnx::Tensor before = tensor;
    if (tensor.type.dtype == DType::kI64 && tensor.type.elements() <= 16) {
      std::vector<int64_t> numbers(static_cast<size_t>(tensor.type.elements()));
      if (!numbers.empty()) std::memcpy(numbers.data(), tensor.data.data(), tensor.data.size());
      Damage([&] {
        const auto* begin = reinterpret_cast<const std::byte*>(numbers.data());
        const bool scalar = before.type.shape.empty() && numbers.size() == 1;
        tensor.type.shape = scalar ? Shape{} : Shape{static_cast<int64_t>(numbers.size())};
        tensor.data = SharedBytes::take({begin, begin + numbers.size() * sizeof(int64_t)});
        use_();
      }).value(numbers);
    }
    tensor = before;
    with(tensor, [&] { tensor.type.shape.insert(tensor.type.shape.begin(), 1); });
    with(tensor, [&] { tensor.type.shape = {tensor.type.elements()}; });
  }

 private:
  template <class T>
  void with(T& part, const auto& damage) const {
    const T before = part;
    damage();
    use_();
    part = before;
  }

  void value(int64_t& number) const {
    for (int64_t wrong : kIntegers) {
      with(number, [&] { number = wrong; });
    }
  }
  void value(float& number) const {
    for (float wrong : kFloats) {
      with(number, [&] { number = wrong; });
    }
  }
  void value(std::string& text) const {
    with(text, [&] { text = "unheard_of"; });
    with(text, [&] { text = ""; });
  }
  template <class T>
  void value(std::vector<T>& values) const {
    for (size_t i = 0; i < values.size() && i < 4; ++i) value(values[i]);
    with(values, [&] { values.clear(); });
    with(values, [&] { values.resize(values.size() + 1); });
    with(values, [&] { values.resize(values.size() + 40); });
    if (values.size() > 1) with(values, [&] { values.pop_back(); });
  }
  template <class T>
  void value(T&) const {}  // graphs, types

  std::function<void()> use_;
};

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  const auto folder = testing::cases_folder() / "semantics";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class DamagedModels : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DamagedModels);

TEST_P(DamagedModels, AreErrorsOrRun) {
  auto model = onnx::read_model(testing::cases_folder() / "semantics" / GetParam() / "model.onnx");
  ASSERT_TRUE(model.ok()) << model.error().message;
  if (model->graph.nodes.size() > 12) GTEST_SKIP() << "its operators have cases of their own";
  const Damage damage([&] { import_and_run(*model); });
  for (onnx::Node& node : model->graph.nodes) damage.node(node);
  for (onnx::Tensor& tensor : model->graph.initializers) damage.value(tensor);
  for (onnx::ValueInfo& input : model->graph.inputs) damage.input(input);
}

INSTANTIATE_TEST_SUITE_P(Semantics, DamagedModels, ::testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kiln::onnx_import
