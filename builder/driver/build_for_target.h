// kiln::build from where the target is chosen: import to a verified engine file.
#pragma once
#include <span>

#include "builder/builder.h"
#include "builder/driver/build_target.h"
#include "builder/driver/progress.h"
#include "builder/shape_point.h"
#include "formats/onnx/model.h"

namespace kiln {

// Errors as kiln::build. `target.providers` are the tactics that there are.
Result<BuildResult> build_for_target(const onnx::Model& model, std::span<const ShapePoint> points,
                                     const BuildOptions& options, ChosenTarget target,
                                     LoadedTimingCache cache, std::span<const Plugin> plugins,
                                     ProgressMeter& meter);

}  // namespace kiln
