// ShapePoint: the concrete extents (and fixed values) that one instance of a model is built for.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "builder/build_options.h"

namespace kiln {

struct ShapePoint {
  std::string name;                       // "b8", "b8/long", "static"
  int64_t batch = 0;                      // 0: the model has no batch dimension
  std::string shape_set;                  // "" for the unnamed one
  std::map<std::string, Shape> inputs;    // every extent a number
  std::map<std::string, int> batch_axes;  // of each input that has one
  std::map<std::string, FixedValue> fixed_values;
};

// The same with `rows` rows in the place of its batch. REQUIRES: point.batch > 0.
ShapePoint with_rows(const ShapePoint& point, int64_t rows);

}  // namespace kiln
