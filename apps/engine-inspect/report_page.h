// engine-inspect --html: the build report of one engine, or of two to compare, as a page.
#pragma once
#include "apps/engine-inspect/options.h"
#include "formats/result.h"

namespace kiln::inspect {

// Writes options.html from options.engine and, where given, options.other. Each may be a report
// that engine-build --report wrote instead. kInvalidArgument: no such shape point, or the page
// would replace what it is made of.
Result<> write_report_page(const Options& options);

}  // namespace kiln::inspect
