// A test case on disk: model.onnx, test_data_set_<k>/{input,output}_<i>.pb and an optional
// case.json with `tolerance`, `expect` ("ok" or "error") and `error_must_name`.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::conformance {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;  // ONNX's own defaults
};

struct CaseFolder {
  std::string name;
  std::filesystem::path folder;
  Tolerance tolerance;
  bool expect_error = false;
  std::vector<std::string> error_must_name;
  std::vector<std::filesystem::path> data_sets;  // in order
};

struct DataSet {
  std::vector<onnx::Tensor> inputs, outputs;
};

// The folders below `path` that hold a model.onnx, by name.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& path);
Result<CaseFolder> read_case(const std::filesystem::path& folder);
Result<DataSet> read_data_set(const std::filesystem::path& folder);

}  // namespace kiln::conformance
