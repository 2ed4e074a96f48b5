#include "tests/environment.h"

#include <cstdlib>

namespace kiln::testing {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

std::filesystem::path build_folder() { return environment("KILN_BINARY_DIR", KILN_BINARY_DIR); }
std::filesystem::path sample_plugin() {
  return build_folder() / "plugins" / "libkiln_plugin_sample.so";
}
std::filesystem::path cases_folder() { return environment("KILN_CASES_DIR", KILN_CASES_DIR); }
std::filesystem::path extra_models_folder() { return environment("KILN_EXTRA_MODELS", ""); }
std::string compiler() { return environment("KILN_CXX", KILN_CXX); }
std::string python() { return environment("KILN_PYTHON", KILN_PYTHON); }

}  // namespace kiln::testing
