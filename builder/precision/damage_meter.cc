#include "builder/precision/damage_meter.h"

#include <algorithm>
#include <cmath>

#include "builder/verify/compare.h"

namespace kiln::precision {

DamageMeter::DamageMeter(const ir::Graph& graph, DType narrow, DType io, std::vector<Probe> probes,
                         const ReferenceOptions& options)
    : graph_(graph), narrow_(narrow), io_(io) {
  for (Probe& probe : probes) {
    IncrementalReference reference(probe.inputs, options);
    runs_.push_back({std::move(probe), std::move(reference)});
  }
}

Result<ir::Graph> DamageMeter::retyped(const std::vector<std::string>& keep) {
  const Storage storage = choose_storage(graph_, {narrow_, io_, keep});
  return retype_graph(graph_, storage, narrow_, constants_);
}

Result<double> DamageMeter::damage_on(Run& run, const ir::Graph& graph) {
  KILN_ASSIGN_OR_RETURN(const auto outputs, run.reference.run(graph));
  double damage = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_float(run.probe.outputs[i].type.dtype)) continue;
    const double cosine = cosine_of(outputs[i], run.probe.outputs[i]);
    damage = std::max(damage, std::isfinite(cosine) ? 1 - cosine : 1);
  }
  return damage;
}

Result<double> DamageMeter::damage(const std::vector<std::string>& keep, double enough) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, retyped(keep));
  double most = -1;
  for (size_t i = 0; i < runs_.size() && most <= enough; ++i) {
    KILN_ASSIGN_OR_RETURN(const double damage, damage_on(runs_[i], graph));
    if (damage <= most) continue;
    most = damage;
    if (worst_remembers_ || i == 0) continue;
    std::rotate(runs_.begin(), runs_.begin() + static_cast<ptrdiff_t>(i),
                runs_.begin() + static_cast<ptrdiff_t>(i) + 1);
  }
  return most;
}

Result<double> DamageMeter::damage_on_worst(const std::vector<std::string>& keep) {
  IncrementalReference& reference = runs_.front().reference;
  if (!worst_remembers_) {
    // What most measurements share: the graph in f32.
    const std::vector<std::string> all(graph_.node_count(), "measured");
    KILN_ASSIGN_OR_RETURN(const ir::Graph wide, retyped(all));
    KILN_RETURN_IF_ERROR(reference.run(wide, true));
    worst_remembers_ = true;
  }
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, retyped(keep));
  return damage_on(runs_.front(), graph);
}

}  // namespace kiln::precision
