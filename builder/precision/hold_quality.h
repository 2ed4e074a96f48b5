// Decides which regions stay f32 so that a model in a narrow dtype keeps its quality.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "builder/pipeline/pass.h"
#include "builder/precision/damage_meter.h"

namespace kiln::precision {

struct QualityGoal {
  DType narrow;
  // 1 - cosine of every output on every probe. What is met here must hold on other inputs too.
  double damage = 5e-4;
  double most_damage = 1e-3;  // beyond it the model is refused
};

struct HeldQuality {
  std::map<std::string, RegionQuality> regions;  // for PassOptions
  double damage = 5e-4;                          // the goal's
  std::string note;                              // one line for the report; "" if all are narrow
};

// `graph` is what the meter measures. kVerification: not even f32 regions meet most_damage; names
// the cosine and the worst regions. `progress` gets the share of the measurements done, 0 to 1.
Result<HeldQuality> hold_quality(const ir::Graph& graph, const QualityGoal& goal,
                                 DamageMeter& meter, const std::function<void(double)>& progress);

}  // namespace kiln::precision
