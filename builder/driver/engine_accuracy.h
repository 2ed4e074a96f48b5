// What verification asks of a whole engine.
#pragma once
#include <string_view>

#include "builder/ir/graph.h"
#include "builder/verify/verify_engine.h"

namespace kiln {

// A note of an engine's report until it is verified.
inline constexpr const char* kNotVerified =
    "not verified by its build; engine-build --verify-engine does that on its device";

// Whether any value of an imported graph is a float of fewer than 32 bits.
bool has_narrow_floats(const ir::Graph& graph);

// `precision` as an engine file names it; `narrow_floats`: the model itself has some.
EngineAccuracy engine_accuracy(std::string_view precision, bool narrow_floats);

}  // namespace kiln
