// What engine-run does between its command line and its printing.
#pragma once
#include "apps/engine-run/options.h"
#include "apps/engine-run/outcome.h"

namespace kiln::run {

// Loads the engine, makes or reads inputs, runs, compares, measures, writes outputs.
Result<Outcome> run_engine(const Options& options);

}  // namespace kiln::run
