// BuildState's report: what was decided at each shape point, in formats/report's terms.
#include <algorithm>
#include <map>

#include "builder/driver/build_state.h"
#include "formats/report/quantity_text.h"
#include "formats/version.h"

namespace kiln {
namespace {

constexpr const char* kPrecisionNames[] = {"fp32", "fp16", "bf16"};
constexpr DType kPrecisionTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

// The narrowest float among a region's outputs, "-" where it has none.
std::string realised_precision(const ir::Graph& graph, const ir::Node& node) {
  std::string narrowest = "-";
  int bits = 1024;
  for (ir::ValueId id : node.outputs) {
    const DType dtype = graph.type(id).dtype;
    if (!is_float(dtype) || bits_of(dtype) >= bits) continue;
    bits = bits_of(dtype);
    narrowest = to_string(dtype);
  }
  return narrowest;
}

std::vector<report::PrecisionShare> shares(const std::vector<report::Region>& regions) {
  std::map<std::string, report::PrecisionShare> by_name;
  for (const report::Region& region : regions) {
    report::PrecisionShare& share = by_name[region.precision_realised];
    share.precision = region.precision_realised;
    share.flops += region.flops;
    share.bytes += region.bytes_read + region.bytes_written;
    ++share.regions;
  }
  std::vector<report::PrecisionShare> result;
  for (auto& [name, share] : by_name) result.push_back(share);
  return result;
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

}  // namespace

report::Point BuildState::report_point(const Point& point) const {
  report::Point result;
  result.name = point.shape.name;
  result.batch = point.shape.batch;
  result.regions = point.scheduled.records;
  result.near_misses = point.passes.near_misses;
  result.memory = point.memory;
  result.verification = point.verification;
  for (const PassTiming& timing : point.passes.timings) {
    result.passes.push_back({timing.pass, timing.changes > 0, timing.changes});
  }
  const Schedule& schedule = point.scheduled.schedule;
  const DType asked = kPrecisionTypes[static_cast<size_t>(options_.precision)];
  for (size_t i = 0; i < result.regions.size(); ++i) {
    report::Region& region = result.regions[i];
    const ir::Node& node = schedule.graph.node(schedule.regions[i].node);
    region.precision_asked = to_string(asked);
    region.precision_realised = realised_precision(schedule.graph, node);
    for (const PrecisionDecision& decision : point.passes.precision) {
      if (decision.region != node.name) continue;
      region.precision_asked = to_string(decision.asked);
      region.precision_realised = to_string(decision.realised);
      region.precision_reason = decision.reason;
      region.precision_damage = decision.damage;
    }
    if (region.chosen >= 0) {
      result.sum_us += region.candidates[static_cast<size_t>(region.chosen)].median_us;
    }
  }
  result.precision = shares(result.regions);
  return result;
}

report::Report BuildState::make_report() {
  report::Report report;
  report.build.kiln_version = kVersion;
  report.build.model_name = model_.path.filename().string();
  report.build.model_hash = report::hash_text(model_hash_);
  report.build.target = device_.target == plan::Target::kHost ? "host" : "cuda";
  report.build.device = device_.name;
  report.build.precision = kPrecisionNames[static_cast<size_t>(options_.precision)];
  report.build.disabled_passes = options_.disabled_passes;
  report.build.verified = verified_;
  report.weights_bytes = weights_bytes_;
  report.notes = notes_;
  if (!batch_padding_ && !batch_padding_reason_.empty()) {
    add_note(report.notes, "requests are not padded to a bucket: " + batch_padding_reason_);
  }
  for (const Point& point : points_) {
    for (const std::string& note : point.passes.notes) add_note(report.notes, note);
    for (const std::string& note : point.scheduled.notes) add_note(report.notes, note);
    report.points.push_back(report_point(point));
  }
  report.stages = meter_.stages();
  return report;
}

}  // namespace kiln
