// BuildState: what one build has so far. build.cc calls its steps in order.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "builder/builder.h"
#include "builder/driver/build_target.h"
#include "builder/driver/progress.h"
#include "builder/emit/emit_plan.h"
#include "builder/pipeline/pass.h"
#include "builder/tactics/schedule_regions.h"
#include "builder/verify/locate_fault.h"
#include "builder/verify/verify_engine.h"
#include "formats/onnx/model.h"

namespace kiln {

class BuildState {
 public:
  BuildState(const onnx::Model& model, const BuildOptions& options, ChosenTarget target,
             LoadedTimingCache cache, std::span<const Plugin> plugins, ProgressMeter& meter);

  // Proves that rows are independent along the batch, or notes why not.
  Result<> analyse_rows(std::span<const ShapePoint> points);
  // Finds which regions stay f32 so that a narrow precision keeps its quality, once a shape set.
  // The timing cache may know; --no-verify measures nothing.
  Result<> measure_precision(const ShapePoint& point, double from, double to);
  // kInvalidArgument: a file of the user's data fits none of the points. Before any tactic is
  // tried, for verification would find it out at the end only.
  Result<> check_user_data(std::span<const ShapePoint> points);
  // Import, passes and tactics of one shape point.
  Result<> add_point(const ShapePoint& point, double from, double to);
  // kUnsupported, with all that is missing: the GPU is elsewhere, and the timing cache does not
  // know the whole model.
  Result<> check_complete() const;
  // Compares the engine with the reference at every point, unless it is not to be or cannot be. A
  // region at fault gets another tactic.
  Result<> verify(double from, double to);
  // Fills in what the report says of memory.
  void plan_memory() { make_plan(); }
  Result<> write_engine();
  // Whether anything has been timed, by this build or before.
  bool has_timed() const;
  void save_timing_cache();

  report::Report make_report();
  Result<> write_report(const std::string& text) const;

 private:
  struct Point {
    Scheduled scheduled;
    ir::Graph regions;  // as the passes left it, for another round of tactics
    ShapePoint shape;
    PassContext passes;
    std::vector<report::Verification> verification;
    report::Memory memory;
    double graph_us = 0;  // of the whole point on the device; 0: not measured
  };

  // What a narrow precision must hold, and what was found for that.
  struct NarrowGoal {
    double damage = 5e-4;                         // 1 - cosine; half of what verification allows
    std::vector<std::vector<HostTensor>> failed;  // inputs that verification found wanting
    bool met = false;
    std::map<std::string, RegionQuality> quality;  // for PassOptions
    std::string question;                          // of the first point, in the timing cache
  };

  Result<ir::Graph> import(const ShapePoint& point);
  // Rows may stay apart and the batch's size still be part of a result: then nothing is padded.
  Result<> check_batch_in_values(const ir::Graph& graph, const ShapePoint& point);
  Result<Point> make_point(const ShapePoint& shape, double from, double to);
  Result<> schedule(Point& point);
  void save_timing_cache_at_times();
  plan::Plan make_plan();
  Result<bool> verify_once(double from, double to);
  Result<> repair(Point& point, const PointVerdict& verdict);
  Result<> time_points(const Engine& engine);
  Result<bool> verify_user_data(EngineVerifier& verifier);
  Result<int64_t> user_rows_per_file(size_t files);
  Result<std::vector<std::vector<HostTensor>>> probe_inputs(const ir::Graph& graph,
                                                            const ShapePoint& point,
                                                            uint64_t made_up);
  bool recall_quality(NarrowGoal& goal);
  std::string sensitivity_text(const Point& point);
  Result<bool> tighten_precision(const Point& failed, const PointVerdict& verdict);
  Result<Fault> find_fault(const Point& point, const PointVerdict& verdict);
  Error wrong_engine(const Point& point, const PointVerdict& verdict, std::string what) const;
  LoadOptions load_options() const;
  ReferenceOptions reference_options() const;
  EngineAccuracy accuracy() const;
  report::Point report_point(const Point& point) const;

  const onnx::Model& model_;
  const BuildOptions& options_;
  std::span<const Plugin> plugins_;
  ProgressMeter& meter_;
  ChosenTarget target_;
  const DeviceInfo& device_;
  std::unique_ptr<Judge> judge_;  // null where nothing can be run
  TimingCache cache_;
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now();  // cache_
  bool foreign_timing_cache_ = false;  // what is in its place is left alone
  std::unique_ptr<SelectionContext> selection_;
  std::map<std::string, NarrowGoal> narrow_goals_;  // by shape set
  std::shared_ptr<precision::ConvertedConstants> constants_;
  std::vector<Point> points_;
  std::vector<std::string> missing_;  // "'conv_1 + relu_1' at b8"
  std::vector<int> output_axes_;
  bool batch_padding_ = false;
  std::string batch_padding_reason_;
  bool has_narrow_floats_ = false;
  bool verified_ = false;
  int repairs_ = 0;  // that verification asked for
  uint64_t weights_bytes_ = 0;
  uint64_t model_hash_;
  std::vector<std::string> notes_;
};

}  // namespace kiln
