#include "tests/conformance/case_folder.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/onnx/read_model.h"

namespace kiln::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

Result<> read_description(const fs::path& file, CaseFolder& result) {
  std::ifstream stream(file);
  if (!stream) return Ok();
  const auto json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.is_object()) {
    return Error{ErrorCode::kCorruptData, "'" + file.string() + "' is no JSON object"};
  }
  result.expect_error = json.value("expect", "ok") == "error";
  result.error_must_name = json.value("error_must_name", std::vector<std::string>());
  const auto tolerance = json.value("tolerance", nlohmann::json::object());
  result.tolerance.relative = tolerance.value("rtol", result.tolerance.relative);
  result.tolerance.absolute = tolerance.value("atol", result.tolerance.absolute);
  return Ok();
}

Result<std::vector<onnx::Tensor>> read_tensors(const fs::path& folder, const std::string& stem) {
  std::vector<onnx::Tensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path file = folder / (stem + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return tensors;
    auto tensor = onnx::read_tensor_file(file);
    if (!tensor.ok()) return std::move(tensor).error();
    tensors.push_back(*std::move(tensor));
  }
}

}  // namespace

std::vector<fs::path> find_cases(const fs::path& path) {
  if (fs::exists(path / "model.onnx")) return {path};
  std::vector<fs::path> cases;
  for (const fs::path& entry : sorted_entries(path)) {
    if (fs::exists(entry / "model.onnx")) cases.push_back(entry);
  }
  return cases;
}

Result<CaseFolder> read_case(const fs::path& folder) {
  CaseFolder result;
  result.folder = folder;
  result.name = folder.filename().string();
  KILN_RETURN_IF_ERROR(read_description(folder / "case.json", result));
  for (const fs::path& entry : sorted_entries(folder)) {
    if (entry.filename().string().starts_with("test_data_set_")) result.data_sets.push_back(entry);
  }
  return result;
}

Result<DataSet> read_data_set(const fs::path& folder) {
  DataSet data;
  KILN_ASSIGN_OR_RETURN(data.inputs, read_tensors(folder, "input"));
  KILN_ASSIGN_OR_RETURN(data.outputs, read_tensors(folder, "output"));
  return data;
}

}  // namespace kiln::conformance
