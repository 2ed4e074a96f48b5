// BuildState's report: what was decided at each shape point, in formats/report's terms.
#include <algorithm>
#include <map>

#include "builder/driver/build_state.h"
#include "builder/driver/region_precision.h"
#include "formats/report/quantity_text.h"
#include "formats/version.h"

namespace kiln {
namespace {

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
  const PrecisionWish wish{options_.precision, target_.cuda.has_value(), point.passes.precision};
  for (size_t i = 0; i < result.regions.size(); ++i) {
    report::Region& region = result.regions[i];
    describe_precision(schedule.graph, schedule.regions[i], wish, region);
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
  report.build.precision = to_string(options_.precision);
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
