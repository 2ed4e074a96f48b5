// Which shape points a model is built for: batch buckets times named shape sets.
#pragma once
#include <vector>

#include "builder/build_options.h"
#include "builder/shape_point.h"
#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx_import {

// The batch dimension is what --shapes marks with B, else the first input's symbolic leading
// dimension; it is every dimension with that symbol and every nameless leading one. Buckets come
// from --batches, or are the powers of two up to --max-batch and that itself, or just 1. Other
// symbolic dimensions must be given by --shapes; one given extent settles its symbol everywhere.
// Inputs that have an initializer keep it and are in no point. Errors say which flag to give.
Result<std::vector<ShapePoint>> plan_shape_points(const onnx::Model& model,
                                                  const BuildOptions& options);

}  // namespace kiln::onnx_import
