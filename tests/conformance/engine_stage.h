// The whole way of a case: build an engine for all its data sets, load it, run each.
#pragma once
#include <filesystem>
#include <map>
#include <set>
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

struct EngineRun {
  std::vector<std::vector<HostTensor>> outputs;  // of each request, in the model's order
  std::set<std::string> passes;                  // that changed the graph of some request
};

// This process's own, removed with what it holds.
struct ScratchFolder {
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  std::filesystem::path path;
};

// Runs that share a folder share the timings of equal regions.
Result<EngineRun> run_engine(const std::filesystem::path& path, const onnx::Model& model,
                             const std::vector<Request>& requests,
                             const std::vector<std::string>& disabled_passes,
                             const ScratchFolder& scratch);

}  // namespace kiln::conformance
