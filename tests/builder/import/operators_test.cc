// OPERATORS.md says which operators have a handler. KILN_UPDATE=1 rewrites it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "builder/import/onnx/operator_list.h"

namespace kiln::onnx_import {
namespace {

constexpr const char* kFile = "builder/import/onnx/OPERATORS.md";

std::string expected_text() {
  std::string text =
      "# Operators\n\n"
      "Operators with an import handler, of every operator set from 7 on. What ONNX defines as a\n"
      "function, and functions of the model itself, are supported through their bodies. Refused:\n"
      "strings, training, random numbers, and output shapes that depend on values which are not\n"
      "fixed when building.\n\n"
      "Written by tests/builder/import/operators_test.cc.\n\n";
  for (const std::string& name : handled_operators()) text += "- " + name + "\n";
  return text;
}

TEST(Operators, AreListed) {
  if (std::getenv("KILN_UPDATE")) std::ofstream(kFile) << expected_text();
  std::ifstream stream(kFile);
  std::stringstream found;
  found << stream.rdbuf();
  EXPECT_EQ(found.str(), expected_text()) << "run once with KILN_UPDATE=1";
}

TEST(Operators, HaveOneHandlerEach) {
  const auto names = handled_operators();
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace kiln::onnx_import
