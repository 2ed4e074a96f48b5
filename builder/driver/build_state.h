// BuildState: what one build has so far. build.cc calls its steps in order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "builder/builder.h"
#include "builder/device/device.h"
#include "builder/driver/progress.h"
#include "builder/emit/emit_plan.h"
#include "builder/pipeline/pass.h"
#include "builder/tactics/schedule_regions.h"
#include "builder/verify/verify_engine.h"
#include "formats/onnx/model.h"

namespace kiln {

class BuildState {
 public:
  BuildState(const onnx::Model& model, const BuildOptions& options, std::span<const Plugin> plugins,
             ProgressMeter& meter);

  // Proves that rows are independent along the batch, or notes why not.
  Result<> analyse_rows(std::span<const ShapePoint> points);
  // Import, passes and tactics of one shape point.
  Result<> add_point(const ShapePoint& point, double from, double to);
  // Compares the engine with the reference at every point. A region at fault gets another tactic.
  Result<> verify(double from, double to);
  Result<> write_engine();
  void save_timing_cache();

  report::Report make_report();
  Result<> write_report(const std::string& json) const;

 private:
  struct Point {
    Scheduled scheduled;
    ir::Graph regions;  // as the passes left it, for another round of tactics
    ShapePoint shape;
    PassContext passes;
    std::vector<report::Verification> verification;
    report::Memory memory;
  };

  Result<ir::Graph> import(const ShapePoint& point);
  Result<> schedule(Point& point);
  plan::Plan make_plan();
  Result<bool> verify_once(double from, double to);
  Result<> repair(Point& point, const PointVerdict& verdict);
  Result<bool> verify_user_data(EngineVerifier& verifier);
  std::string keep_inputs(const Point& point, const PointVerdict& verdict) const;
  LoadOptions load_options() const;
  EngineAccuracy accuracy() const;
  report::Point report_point(const Point& point) const;

  const onnx::Model& model_;
  const BuildOptions& options_;
  std::span<const Plugin> plugins_;
  ProgressMeter& meter_;
  DeviceInfo device_;
  std::unique_ptr<Judge> judge_;
  TimingCache cache_;
  std::unique_ptr<SelectionContext> selection_;
  std::vector<Point> points_;
  std::vector<int> output_axes_;
  bool batch_padding_ = false;
  std::string batch_padding_reason_;
  bool has_narrow_floats_ = false;
  bool verified_ = false;
  uint64_t weights_bytes_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace kiln
