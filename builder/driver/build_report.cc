// BuildState's report: what was decided at each shape point, in formats/report's terms.
#include <algorithm>
#include <map>

#include "builder/device/peak_rates.h"
#include "builder/driver/build_state.h"
#include "builder/driver/region_precision.h"
#include "builder/driver/region_target.h"
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

// "9.0" for 90 where majors count 10 and minors 1, "13.1" for CUDA's 13010.
std::string decimal(uint32_t number, uint32_t major, uint32_t minor) {
  return std::to_string(number / major) + "." + std::to_string(number % major / minor);
}

std::vector<std::pair<std::string, std::string>> versions_of(const DeviceInfo& device) {
  std::vector<std::pair<std::string, std::string>> versions;
  const auto add = [&](const char* library, std::string version) {
    versions.emplace_back(library, std::move(version));
  };
  if (device.driver_version > 0) add("driver for CUDA", decimal(device.driver_version, 1000, 10));
  if (device.cuda_version > 0) add("CUDA Toolkit", decimal(device.cuda_version, 1000, 10));
  const size_t space = device.compiler.find(' ');
  if (space != std::string::npos) add("NVRTC", device.compiler.substr(space + 1));
  if (device.cublaslt_version > 0) add("cuBLASLt", std::to_string(device.cublaslt_version));
  if (device.cudnn_version > 0) add("cuDNN", std::to_string(device.cudnn_version));
  return versions;
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
  result.graph_us = point.graph_us;
  const report::PeakRates rates = peak_rates(device_);
  for (size_t i = 0; i < result.regions.size(); ++i) {
    report::Region& region = result.regions[i];
    const ScheduledRegion& scheduled = schedule.regions[i];
    const auto& body = std::get<ir::Region>(schedule.graph.node(scheduled.node).op);
    if (target_.cuda) describe_host_steps(body, scheduled.lowered, region);
    describe_roofline(body, scheduled.lowered, rates, region);
    describe_precision(schedule.graph, scheduled, wish, region);
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
  if (target_.cuda) report.build.compute_capability = decimal(device_.compute_capability, 10, 1);
  report.build.peak_rates = peak_rates(device_);
  report.build.versions = versions_of(device_);
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
