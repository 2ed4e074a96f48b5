// What tests need from outside. The build knows it; environment variables of the same names say
// otherwise where tests run on another machine than the one that built them.
#pragma once
#include <filesystem>
#include <string>

namespace kiln::testing {

// KILN_BINARY_DIR, with programs in bin/ and plugins in plugins/.
std::filesystem::path build_folder();
std::filesystem::path sample_plugin();

// KILN_CASES_DIR, the conformance cases: empty or missing where there are none.
std::filesystem::path cases_folder();

// KILN_EXTRA_MODELS, a folder of .onnx files that tests on a GPU also build; empty where not set.
std::filesystem::path extra_models_folder();

// KILN_CXX, the C++ compiler.
std::string compiler();

// KILN_PYTHON, a Python with NumPy, onnx and onnxruntime.
std::string python();

}  // namespace kiln::testing
