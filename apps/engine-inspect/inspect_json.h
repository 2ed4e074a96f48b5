// An engine file as JSON.
#pragma once
#include <string>

#include "apps/engine-inspect/options.h"
#include "formats/engine_file/plan.h"

namespace kiln::inspect {

// Steps and arena buffers are there only when asked for.
std::string to_json(const plan::Plan& plan, const Options& options);

}  // namespace kiln::inspect
