// Whether an engine's output is the reference's, and how far rounding alone may part them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/verify/reference.h"
#include "formats/report/report.h"

namespace kiln {

// What "right" means for a whole engine: elementwise by accuracy_for() of the output's dtype, or,
// where narrow floats are at work, the cosine of each batch row of each float output.
struct EngineAccuracy {
  double min_cosine = 0;  // 0: elementwise
};

// By output: how far the reference moves when its inputs do by rounding, several times over, but
// never more than a hundredth of what the output holds: beyond that nothing would be verified.
Result<std::vector<double>> reference_noise(const ir::Graph& graph,
                                            std::span<const HostTensor> inputs,
                                            std::span<const HostTensor> outputs,
                                            const ReferenceOptions& options);

// Adds one output's comparison, of one row or of all, to a check; `label` names it there.
Result<> check_output(const HostTensor& got, const HostTensor& want, const EngineAccuracy& accuracy,
                      double noise, const std::string& label, report::Verification& check);

}  // namespace kiln
