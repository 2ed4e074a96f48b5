// Which operators have a handler; OPERATORS.md is written from it.
#pragma once
#include <string>
#include <vector>

namespace kiln::onnx_import {

// "Add", "com.microsoft.Gelu", ..., sorted.
std::vector<std::string> handled_operators();

}  // namespace kiln::onnx_import
