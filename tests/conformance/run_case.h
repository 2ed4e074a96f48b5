// Runs one case in this process.
#pragma once
#include <cstdint>

#include "tests/conformance/case_folder.h"
#include "tests/conformance/outcome.h"

namespace kiln::conformance {

enum class Stage : uint8_t {
  kImport,  // import, then the reference, one node at a time
  kEngine,  // build, load, infer
};

struct RunOptions {
  Stage stage = Stage::kEngine;
  std::vector<std::string> disabled_passes;
  bool each_pass = false;  // engine stage: also with each pass off in turn, and with none
};

// Refused: an error of the kind "unsupported" where an answer was expected.
Outcome run_case(const CaseFolder& folder, const RunOptions& options);

}  // namespace kiln::conformance
