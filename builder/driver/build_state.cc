#include "builder/driver/build_state.h"

#include <algorithm>
#include <chrono>

#include "builder/batch/batch_in_values.h"
#include "builder/batch/row_independence.h"
#include "builder/device/device_fields.h"
#include "builder/driver/check_memory.h"
#include "builder/driver/engine_accuracy.h"
#include "builder/import/onnx/import.h"
#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"
#include "builder/precision/retype_graph.h"
#include "builder/tactics/engine_judge.h"
#include "formats/engine_file/write_engine.h"
#include "formats/file/atomic_file.h"
#include "formats/onnx/content_hash.h"
#include "formats/version.h"

namespace kiln {
namespace {

// An extent that models rarely have for another reason.
constexpr int64_t kFewRows = 5;

}  // namespace

BuildState::BuildState(const onnx::Model& model, const BuildOptions& options, ChosenTarget target,
                       LoadedTimingCache cache, std::span<const Plugin> plugins,
                       ProgressMeter& meter)
    : model_(model),
      options_(options),
      plugins_(plugins),
      meter_(meter),
      target_(std::move(target)),
      device_(target_.device),
      cache_(std::move(cache.cache)),
      foreign_timing_cache_(cache.foreign),
      constants_(std::make_shared<precision::ConvertedConstants>()),
      model_hash_(onnx::content_hash(model)),
      notes_(std::move(cache.notes)) {
  if (!target_.is_elsewhere()) {
    JudgedTarget judged{target_.origin(), load_options(), reference_options()};
    if (target_.cuda) judged.tensors = target_.cuda->trial_tensors();
    judge_ = make_engine_judge(std::move(judged));
  }
  const std::string environment = target_.environment();
  if (options.precision == Precision::kTf32 && !target_.cuda) {
    notes_.emplace_back("--tf32: target host computes in f32");
  }
  for (const std::string& name : options.disabled_tactics) {
    notes_.push_back("tactics off: " + name);
  }
  if (options.stop_after >= 0) {
    notes_.push_back("stopped after " + std::to_string(options.stop_after) +
                     (options.stop_after == 1 ? " change by passes" : " changes by passes"));
  }
  const std::string note = note_on_environment(cache_, environment);
  if (!note.empty()) {
    notes_.push_back("timing cache '" + options.timing_cache.string() + "' " + note);
  }
  selection_ = std::make_unique<SelectionContext>(
      SelectionContext{target_.providers, judge_.get(), cache_, environment, target_.tools()});
}

Result<ir::Graph> BuildState::import(const ShapePoint& point) {
  KILN_ASSIGN_OR_RETURN(auto imported, onnx_import::import_onnx(model_, point, {plugins_}));
  for (std::string& note : imported.notes) {
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) {
      notes_.push_back(std::move(note));
    }
  }
  return std::move(imported.graph);
}

Result<> BuildState::analyse_rows(std::span<const ShapePoint> points) {
  const auto most = std::max_element(
      points.begin(), points.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  if (most == points.end() || most->batch == 0) {
    batch_padding_reason_ = "the model has no batch dimension";
    return Ok();
  }
  // At one row a reshape that moves rows elsewhere looks like one that does not.
  ShapePoint probe = *most;
  if (probe.batch == 1) {
    for (const auto& [name, axis] : probe.batch_axes) {
      probe.inputs[name][static_cast<size_t>(axis)] *= 3;
    }
    probe.batch = 3;
  }
  auto graph = import(probe);
  if (!graph.ok() && most->batch == 1) {
    batch_padding_reason_ = "the model accepts one row only";
    return Ok();
  }
  if (!graph.ok()) return std::move(graph).error();
  RowIndependence rows = analyze_rows(*graph, probe, plugins_);
  if (!rows.independent && probe.batch > kFewRows) {
    // Import computes the indices of few rows and leaves those of many to the engine, where nothing
    // is known of them.
    const ShapePoint few = with_rows(probe, kFewRows);
    auto small = import(few);
    RowIndependence found;
    if (small.ok()) found = analyze_rows(*small, few, plugins_);
    if (found.independent) {
      rows = std::move(found);
      graph = std::move(small);
      probe = few;
    }
  }
  batch_padding_ = rows.independent;
  batch_padding_reason_ = std::move(rows.reason);
  output_axes_ = std::move(rows.output_axes);
  return batch_padding_ ? check_batch_in_values(*graph, probe) : Ok();
}

Result<> BuildState::check_batch_in_values(const ir::Graph& graph, const ShapePoint& point) {
  const auto single = import(with_rows(point, 1));
  if (single.ok()) {
    auto reason = batch_in_values(graph, *single, output_axes_);
    // Import folds more of a small graph: what one row lacks may only be folded there.
    if (reason) {
      const auto more = import(with_rows(point, point.batch + 1));
      if (more.ok()) reason = batch_in_values(graph, *more, output_axes_);
    }
    if (!reason) return Ok();
    batch_padding_reason_ = *reason;
  } else {
    batch_padding_reason_ = "the model does not accept a single row";
  }
  batch_padding_ = false;
  output_axes_.clear();
  return Ok();
}

Result<> BuildState::add_point(const ShapePoint& shape, double from, double to) {
  KILN_ASSIGN_OR_RETURN(points_.emplace_back(), make_point(shape, from, to));
  return Ok();
}

Result<BuildState::Point> BuildState::make_point(const ShapePoint& shape, double from, double to) {
  meter_.begin("import " + shape.name, from, from);
  Point point;
  point.shape = shape;
  KILN_ASSIGN_OR_RETURN(point.regions, import(shape));
  KILN_RETURN_IF_ERROR(check_memory(point.regions, shape.name, available_memory_bytes()));
  has_narrow_floats_ = has_narrow_floats_ || has_narrow_floats(point.regions);
  meter_.begin("passes " + shape.name, from, from);
  point.passes.constants = constants_;
  point.passes.options = {.precision = options_.precision,
                          .io_fp16 = options_.io_fp16,
                          .library_layouts = device_.target == plan::Target::kCuda,
                          .quality = narrow_goals_[shape.shape_set].quality,
                          .disabled = options_.disabled_passes,
                          .stop_after = options_.stop_after,
                          .label = shape.name};
  KILN_RETURN_IF_ERROR(run_passes(point.regions, default_pipeline(), point.passes));
  meter_.begin("tactics " + shape.name, from, to);
  KILN_RETURN_IF_ERROR(schedule(point));
  return point;
}

Result<> BuildState::schedule(Point& point) {
  auto scheduled = schedule_regions(point.regions, point.shape, device_, plugins_, *selection_,
                                    [&](double share) {
                                      meter_.update(share);
                                      save_timing_cache_at_times();
                                    });
  if (!scheduled.ok()) {
    return std::move(scheduled).error().context("shape point '" + point.shape.name + "'");
  }
  point.scheduled = std::move(*scheduled);
  for (const std::string& region : point.scheduled.missing) {
    missing_.push_back("'" + region + "' at " + point.shape.name);
  }
  return Ok();
}

plan::Plan BuildState::make_plan() {
  PlanBuilder builder;
  for (Point& point : points_) point.memory = builder.add_point(point.scheduled.schedule);
  weights_bytes_ = builder.weights_bytes();
  plan::Plan plan = std::move(builder).finish();
  plan.origin = target_.origin();
  plan.origin.precision = to_string(options_.precision);
  plan.origin.verified = verified_;
  plan.origin.model_name = model_.path.filename().string();
  plan.origin.model_hash = model_hash_;
  plan.batch_padding = batch_padding_;
  plan.batch_padding_reason = batch_padding_reason_;
  for (size_t i = 0; i < output_axes_.size() && i < plan.outputs.size(); ++i) {
    plan.outputs[i].batch_axis = output_axes_[i];
  }
  return plan;
}

LoadOptions BuildState::load_options() const {
  LoadOptions options;
  options.host_kernels = host_kernels();
  options.plugins = options_.plugins;
  options.allow_unverified = true;
  options.check_weights = false;
  return options;
}

ReferenceOptions BuildState::reference_options() const { return target_.reference(plugins_); }

EngineAccuracy BuildState::accuracy() const {
  return engine_accuracy(to_string(options_.precision), has_narrow_floats_);
}

Result<> BuildState::check_complete() const {
  if (missing_.empty()) return Ok();
  std::string message = "timing cache '" + options_.timing_cache.string() + "' does not know " +
                        std::to_string(missing_.size()) + " of the model's parts on '" +
                        device_.name + "': ";
  for (const std::string& part : missing_) message += part + ", ";
  message.resize(message.size() - 2);
  return Error{
      ErrorCode::kUnsupported,
      message + "; build the model once on that GPU, with the same options and this cache"};
}

Result<> BuildState::write_engine() {
  if (!verified_) notes_.emplace_back(kNotVerified);
  plan_memory();
  report::Report report = make_report();
  report.stages.clear();
  for (report::Point& point : report.points) point.graph_us = 0;
  plan::Plan plan = make_plan();
  plan.report_json = report::to_json(report);
  return kiln::write_engine(plan, options_.output);
}

// A build that is stopped leaves what it has timed to the next one.
void BuildState::save_timing_cache_at_times() {
  constexpr std::chrono::seconds kApart(10);
  if (std::chrono::steady_clock::now() - saved_at_ > kApart) save_timing_cache();
}

bool BuildState::has_timed() const {
  const auto known = cache_.environments.find(selection_->environment);
  return known != cache_.environments.end() && !known->second.timings.empty();
}

void BuildState::save_timing_cache() {
  saved_at_ = std::chrono::steady_clock::now();
  if (options_.timing_cache.empty() || foreign_timing_cache_ || target_.is_elsewhere()) return;
  TimingCache::Environment& environment = cache_.environments[selection_->environment];
  environment.answers = target_.answers->known();
  if (target_.cuda) {
    environment.device_name = device_.name;
    environment.device = device_fields(device_);
  }
  const auto saved = kiln::save_timing_cache(options_.timing_cache, cache_);
  if (saved.ok()) return;
  const std::string note = "timing cache not written: " + saved.error().message;
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

Result<> BuildState::write_report(const std::string& text) const {
  const auto bytes = std::as_bytes(std::span(text));
  return write_file_atomically(options_.report, std::span(&bytes, 1));
}

}  // namespace kiln
