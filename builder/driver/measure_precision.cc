// BuildState's precision step: measures what the narrow dtype does to the model, one shape set at a
// time, before any tactic is tried.
#include <algorithm>
#include <cstdio>

#include "builder/driver/build_state.h"
#include "builder/driver/check_memory.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "builder/precision/choose_precision.h"
#include "builder/precision/hold_quality.h"
#include "builder/precision/quality_record.h"
#include "builder/tactics/region_work.h"
#include "builder/verify/batch_rows.h"
#include "builder/verify/realistic_inputs.h"
#include "builder/verify/user_data.h"

namespace kiln {
namespace {

// Not verification's seeds: it shall look at what nothing was fitted to.
constexpr uint64_t kFirstSeed = 101;
// Three at least, one for each kind of realistic_inputs; more while they are cheap: some inputs
// upset a network far more than most do.
constexpr uint64_t kFewestProbes = 3, kMostProbes = 24, kProbeFlops = 72'000'000'000;
constexpr int64_t kMostUserRows = 16;  // of each file
constexpr double kTightestDamage = 1e-4;

uint64_t probe_count(const ir::Graph& regions) {
  uint64_t flops = 1;
  for (ir::NodeId id : regions.topological_order()) {
    flops += region_work(*std::get<ir::Region>(regions.node(id).op).body).flops;
  }
  return std::clamp(kProbeFlops / flops, kFewestProbes, kMostProbes);
}

Result<std::vector<precision::Probe>> answered(const ir::Graph& graph,
                                               std::vector<std::vector<HostTensor>> inputs,
                                               const ReferenceOptions& options) {
  std::vector<precision::Probe> probes;
  for (auto& one : inputs) {
    KILN_ASSIGN_OR_RETURN(auto outputs, run_reference(graph, one, options));
    probes.push_back({std::move(one), std::move(outputs)});
  }
  return probes;
}

}  // namespace

// What the builder makes up, the user's data, and what verification found wanting before.
Result<std::vector<std::vector<HostTensor>>> BuildState::probe_inputs(const ir::Graph& graph,
                                                                      const ShapePoint& point,
                                                                      uint64_t made_up) {
  std::vector<std::vector<HostTensor>> inputs = narrow_goals_[point.shape_set].failed;
  const auto known = fixed_inputs(graph, point);
  for (uint64_t i = 0; i < made_up; ++i) {
    inputs.push_back(realistic_inputs(graph, kFirstSeed + i, known));
  }
  if (options_.verify_data.empty()) return inputs;
  KILN_ASSIGN_OR_RETURN(const auto files, read_user_data(options_.verify_data));
  for (const UserData& data : files) {
    // What does not fit this shape set is verification's to judge.
    auto requests = user_requests(data, graph, point, kMostUserRows);
    if (!requests.ok()) continue;
    for (auto& request : *requests) inputs.push_back(std::move(request));
  }
  return inputs;
}

Result<> BuildState::measure_precision(const ShapePoint& point, double from, double to) {
  if (!is_narrow(options_.precision)) return Ok();
  NarrowGoal& goal = narrow_goals_[point.shape_set];
  if (goal.met) return Ok();
  meter_.begin("precision " + point.name, from, to);
  const ShapePoint single = batch_padding_ && point.batch > 1 ? with_rows(point, 1) : point;
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(single));
  KILN_RETURN_IF_ERROR(check_memory(graph, point.name, available_memory_bytes()));
  PassContext passes;
  passes.options.disabled = options_.disabled_passes;
  passes.options.stop_after = options_.stop_after;
  ir::Graph regions = graph;
  KILN_RETURN_IF_ERROR(run_passes(regions, default_pipeline(), passes));
  KILN_ASSIGN_OR_RETURN(auto inputs, probe_inputs(graph, single, probe_count(regions)));
  const DType narrow = precision::narrow_dtype(options_.precision);
  const DType io = options_.io_fp16 ? DType::kF16 : DType::kF32;
  if (goal.question.empty())
    goal.question = precision::quality_question(regions, narrow, io, inputs);
  if (recall_quality(goal) || !options_.verify) return Ok();
  if (target_.is_elsewhere()) {
    missing_.push_back("the precision that the regions need at " + point.name);
    goal.met = true;
    return Ok();
  }
  KILN_ASSIGN_OR_RETURN(auto probes, answered(graph, std::move(inputs), reference_options()));
  precision::DamageMeter meter(regions, narrow, io, std::move(probes), reference_options());
  auto held = precision::hold_quality(regions, {.narrow = narrow, .damage = goal.damage}, meter,
                                      [&](double share) { meter_.update(share); });
  if (!held.ok()) return std::move(held).error().context("shape point '" + point.name + "'");
  if (!held->note.empty()) notes_.push_back(held->note);
  target_.answers->record(goal.question, precision::to_values(*held));
  goal.met = true;
  goal.quality = std::move(held->regions);
  return Ok();
}

// What an earlier build measured, and verified since.
bool BuildState::recall_quality(NarrowGoal& goal) {
  const RecordedAnswer* known = target_.answers->find(goal.question);
  if (known == nullptr) return false;
  auto held = precision::held_quality_of(known->values);
  if (!held || held->damage > goal.damage) return false;
  if (!held->note.empty()) notes_.push_back(held->note);
  goal.damage = held->damage;
  goal.met = true;
  goal.quality = std::move(held->regions);
  return true;
}

// Verification met inputs on which the precision does not hold: measures with them too, and leaves
// twice the margin. False if it has done all it can.
Result<bool> BuildState::tighten_precision(const Point& failed, const PointVerdict& verdict) {
  NarrowGoal& goal = narrow_goals_[failed.shape.shape_set];
  if (!goal.met || goal.damage / 2 < kTightestDamage) return false;
  goal.damage /= 2;
  goal.met = false;
  const ShapePoint shape = failed.shape;
  KILN_ASSIGN_OR_RETURN(const ir::Graph model, import(shape));
  const int64_t rows = batch_padding_ && shape.batch > 1 ? shape.batch : 1;
  for (int64_t row = 0; row < std::min(rows, kMostUserRows); ++row) {
    auto& inputs = goal.failed.emplace_back();
    for (size_t i = 0; i < verdict.failing_inputs.size(); ++i) {
      const auto axis = shape.batch_axes.find(model.value(model.inputs()[i]).name);
      const HostTensor& all = verdict.failing_inputs[i];
      const bool whole = rows == 1 || axis == shape.batch_axes.end();
      const HostTensor one = whole ? all : take_row(all, axis->second, row, rows);
      KILN_ASSIGN_OR_RETURN(inputs.emplace_back(),
                            convert_tensor(one, model.type(model.inputs()[i]).dtype));
    }
  }
  KILN_RETURN_IF_ERROR(measure_precision(shape, kTacticsFrom, kTacticsFrom));
  for (Point& point : points_) {
    if (point.shape.shape_set != shape.shape_set) continue;
    KILN_ASSIGN_OR_RETURN(point, make_point(point.shape, kTacticsFrom, kTacticsTo));
  }
  return true;
}

// "bf16 is too narrow even with 12 regions in f32 (most sensitive: 'conv_1' takes 0.002 off the
// cosine)".
std::string BuildState::sensitivity_text(const Point& point) {
  if (!is_narrow(options_.precision)) return "tf32 is too inexact for this model";
  const NarrowGoal& goal = narrow_goals_[point.shape.shape_set];
  size_t kept = 0;
  const std::pair<const std::string, RegionQuality>* worst = nullptr;
  for (const auto& region : goal.quality) {
    kept += region.second.keep.empty() ? 0 : 1;
    if (!worst || region.second.damage > worst->second.damage) worst = &region;
  }
  std::string text(to_string(precision::narrow_dtype(options_.precision)));
  text += " is too narrow even with " + std::to_string(kept) + " regions in f32";
  if (!worst) return text;
  char damage[32];
  std::snprintf(damage, sizeof damage, "%.2g", worst->second.damage);
  return text + " (most sensitive: '" + worst->first + "' takes " + damage + " off the cosine)";
}

}  // namespace kiln
