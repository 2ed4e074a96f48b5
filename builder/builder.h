// kiln::build: one model file in, one verified engine file out.
#pragma once
#include <string>
#include <vector>

#include "builder/build_options.h"
#include "formats/result.h"

namespace kiln {

struct UnsupportedNode {
  std::string node, op_type, reason;
};

struct BuildResult {
  std::filesystem::path engine;    // empty after check_only or dry_run
  std::string report_json;         // formats/report/FORMAT.md
  std::string report_text;         // the same as a terminal table
  std::vector<std::string> notes;  // things the user should know (ignored cache entries, ...)
  std::vector<UnsupportedNode> unsupported;  // with check_only
};

// Errors name the file, the node and what to do. kVerification: the engine disagreed with the
// reference and no other tactic helped; nothing was written. An existing engine file survives any
// failure but one to write the report. Not reentrant for the same output path.
Result<BuildResult> build(const std::filesystem::path& model, const BuildOptions& options,
                          const ProgressFn& progress = {});

// Compares the engine file with the model that it was built from, at every shape point and on the
// device that it is for, and stamps it verified, in the file and in its report. Takes `plugins` and
// `explain` of the options. kInvalidArgument: another model. kVerification: they disagree. On any
// failure the file is as it was.
Result<BuildResult> verify_engine(const std::filesystem::path& model,
                                  const std::filesystem::path& engine, const BuildOptions& options,
                                  const ProgressFn& progress = {});

}  // namespace kiln
