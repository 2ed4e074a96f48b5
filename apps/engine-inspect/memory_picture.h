// The arena of a shape point as a picture of letters: steps from left to right, addresses from top
// to bottom.
#pragma once
#include <string>

#include "formats/engine_file/plan.h"

namespace kiln::inspect {

std::string memory_picture(const plan::ShapePoint& point);

}  // namespace kiln::inspect
