// Whether this runtime may run an engine, by what it was made for.
#pragma once
#include "engine/engine.h"
#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

// kUnsupported: made for a device or several ranks that this runtime does not serve, with what was
// built and what was found. kVerification: its build did not verify it and the options do not allow
// that.
Result<> check_origin(const plan::Origin& origin, const LoadOptions& options);

}  // namespace kiln
