// The whole way of a case: build an engine for all its data sets, load it, run each.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "builder/shape_point.h"
#include "builder/verify/reference.h"
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::conformance {

struct Request {
  ShapePoint point;
  std::map<std::string, HostTensor> inputs;
};

// The outputs of each request, in the model's order.
Result<std::vector<std::vector<HostTensor>>> run_engine(
    const std::filesystem::path& path, const onnx::Model& model,
    const std::vector<Request>& requests, const std::vector<std::string>& disabled_passes);

}  // namespace kiln::conformance
