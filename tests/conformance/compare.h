// Compares an answer with the expected one, by the rules of the cases' README: integers and bools
// bit for bit, floats within the tolerance; NaN equals NaN, infinities equal those of their sign.
#pragma once
#include <span>
#include <string>

#include "builder/verify/reference.h"
#include "formats/onnx/model.h"
#include "tests/conformance/case_folder.h"

namespace kiln::conformance {

// Empty when they agree; else where they differ first and by how much.
std::string difference(const HostTensor& found, const onnx::Tensor& expected,
                       const Tolerance& tolerance);

}  // namespace kiln::conformance
