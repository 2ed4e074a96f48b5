#include "builder/tactics/engine_judge.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

#include "builder/emit/emit_plan.h"
#include "builder/tactics/device_clock.h"
#include "builder/verify/random_inputs.h"
#include "engine/engine.h"
#include "formats/engine_file/write_engine.h"

namespace kiln {
namespace {

constexpr uint64_t kApart = 256;   // bytes between buffers of a candidate
constexpr double kHopeless = 3.0;  // times slower than the best: a few runs say enough
constexpr double kSlower = 1.2;    // times slower than the best, twice: neither does that win
constexpr double kLongUs = 5e5;    // one run of that long says enough
constexpr double kLaunchUs = 10;   // what the launch of a graph may add to a run

double microseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// At least 3 runs, at most 50, about 60 ms in all.
Spread time_runs(const std::function<void()>& work) {
  std::vector<double> times;
  double total = 0;
  while (times.size() < 3 || (times.size() < 50 && total < 6e4)) {
    times.push_back(microseconds_of(work));
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {times[n / 2], (times[n * 3 / 4] - times[n / 4]) / 2};
}

class EngineJudge : public Judge {
 public:
  explicit EngineJudge(JudgedTarget target) : target_(std::move(target)) {
    target_.load.allow_unverified = true;
    target_.load.check_weights = false;
    target_.load.contexts = 0;
  }

  Result<> begin(const TacticQuery& query) override {
    graph_ = ir::Graph();
    cache_bytes_ = query.device.l2_bytes;
    const ir::Graph& body = *query.region.body;
    std::vector<std::optional<HostTensor>> known;
    for (size_t i = 0; i < query.inputs.size(); ++i) {
      known.emplace_back();
      if (query.constants[i]) known.back() = HostTensor{query.inputs[i], *query.constants[i]};
    }
    inputs_ = random_inputs(body, 17, known);
    KILN_ASSIGN_OR_RETURN(want_, run_reference(body, inputs_, target_.reference));
    KILN_RETURN_IF_ERROR(target_.tensors->place(inputs_, want_));
    std::vector<ir::ValueId> arguments;
    for (size_t i = 0; i < query.inputs.size(); ++i) {
      arguments.push_back(
          query.constants[i]
              ? graph_.add_constant("w" + std::to_string(i), query.inputs[i], *query.constants[i])
              : graph_.add_input("x" + std::to_string(i), query.inputs[i]));
    }
    node_ = graph_.add_typed_node("region", {}, query.region, arguments, query.outputs);
    for (ir::ValueId id : graph_.node(node_).outputs) graph_.mark_output(id);
    for (size_t i = 0; i < query.outputs.size(); ++i) {
      graph_.set_output_name(i, "y" + std::to_string(i));
    }
    return Ok();
  }

  Timing judge(const Lowered& lowered, double best_us) override {
    Timing timing;
    auto engine = make_engine(lowered);
    if (!engine.ok()) {
      timing.error = engine.error().message;
      return timing;
    }
    auto context = engine->create_context();
    if (!context.ok()) {
      timing.error = context.error().message;
      return timing;
    }
    const double us = microseconds_of([&] { check(*context, uses_tf32(lowered), timing); });
    if (!timing.error.empty()) return timing;
    if (target_.origin.target == plan::Target::kCuda) {
      DeviceClock clock(*context, engine->info().weights_bytes, cache_bytes_);
      measure_on_device(clock, best_us, timing);
    } else if (us > kLongUs) {
      timing.median_us = us;
    } else {
      measure(*context, best_us, timing);
    }
    return timing;
  }

 private:
  Result<Engine> make_engine(const Lowered& lowered) {
    Schedule schedule;
    schedule.graph = graph_;
    schedule.point.name = "candidate";
    schedule.regions.push_back({node_, "region", false, lowered});
    PlanBuilder builder(kApart);
    builder.add_point(schedule);
    plan::Plan plan = std::move(builder).finish();
    plan.origin = target_.origin;
    let_overlap(lowered, plan);
    KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(plan));
    return Engine::load_bytes(SharedBytes::take(std::move(bytes)), target_.load);
  }

  // The clock runs the candidate behind itself, as in a model it runs behind others.
  static void let_overlap(const Lowered& lowered, plan::Plan& plan) {
    std::vector<plan::Step>& steps = plan.points.front().steps;
    if (steps.empty() || lowered.steps.empty()) return;
    auto* made = std::get_if<plan::KernelLaunch>(&steps.front().action);
    const auto* launch = std::get_if<LocalLaunch>(&lowered.steps.front());
    if (made != nullptr && launch != nullptr) made->programmatic = launch->programmatic;
  }

  std::vector<Tensor> input_tensors() {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ir::Value& value = graph_.value(graph_.node(node_).inputs[i]);
      if (value.constant) continue;
      tensors.push_back(
          {value.name, value.type, target_.tensors->input(i), target_.tensors->memory()});
    }
    return tensors;
  }

  std::vector<Tensor> output_tensors() {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < want_.size(); ++i) {
      tensors.push_back({"y" + std::to_string(i), want_[i].type, target_.tensors->output(i),
                         target_.tensors->memory()});
    }
    return tensors;
  }

  void check(ExecutionContext& context, bool tf32, Timing& timing) {
    const auto checked = [&]() -> Result<> {
      KILN_RETURN_IF_ERROR(target_.tensors->poison_outputs());
      KILN_RETURN_IF_ERROR(context.run_checked(input_tensors(), output_tensors()));
      for (size_t i = 0; i < want_.size(); ++i) {
        KILN_RETURN_IF_ERROR(check_output(i, tf32, timing));
      }
      return Ok();
    }();
    if (!checked.ok()) timing.error = checked.error().message;
    timing.verified = timing.error.empty();
  }

  Result<> check_output(size_t i, bool tf32, Timing& timing) {
    const ir::Graph& body = *std::get<ir::Region>(graph_.node(node_).op).body;
    KILN_ASSIGN_OR_RETURN(
        const Comparison result,
        target_.tensors->check_output(i, accuracy_within(body, want_[i].type.dtype, tf32)));
    timing.max_abs_error = std::max(timing.max_abs_error, result.max_abs_error);
    timing.max_rel_error = std::max(timing.max_rel_error, result.max_rel_error);
    if (!result.passed) timing.error = "output " + std::to_string(i) + ": " + result.worst;
    return Ok();
  }

  void measure(ExecutionContext& context, double best_us, Timing& timing) {
    const auto outputs = output_tensors();
    const auto inputs = input_tensors();
    const auto run = [&] { (void)context.enqueue(inputs, outputs).ok(); };
    const double first = microseconds_of(run);
    if (first > kHopeless * best_us) {
      timing.median_us = first;
      return;
    }
    const Spread spread = time_runs(run);
    timing.median_us = spread.median;
    timing.spread_us = spread.spread;
  }

  // On the tensors that the check left in the context.
  static void measure_on_device(DeviceClock& clock, double best_us, Timing& timing) {
    const auto timed = [&]() -> Result<> {
      KILN_ASSIGN_OR_RETURN(timing.median_us, clock.glance());
      if (timing.median_us > std::min(kHopeless * best_us + kLaunchUs, kLongUs)) return Ok();
      KILN_RETURN_IF_ERROR(clock.time(1));  // warms up
      KILN_ASSIGN_OR_RETURN(timing.median_us, clock.time(1));
      if (timing.median_us > kHopeless * best_us) return Ok();
      if (timing.median_us > kSlower * best_us) {
        KILN_ASSIGN_OR_RETURN(const double again, clock.time_for(500, timing.median_us));
        timing.spread_us = std::abs(again - timing.median_us) / 2;
        timing.median_us = std::min(again, timing.median_us);
        if (timing.median_us > kSlower * best_us) return Ok();
      }
      KILN_ASSIGN_OR_RETURN(const Spread spread, clock.measure(timing.median_us));
      timing.median_us = spread.median;
      timing.spread_us = spread.spread;
      return Ok();
    };
    const auto done = timed();
    if (done.ok()) return;
    timing.error = done.error().message;
    timing.verified = false;
  }

  JudgedTarget target_;
  ir::Graph graph_;
  ir::NodeId node_{};
  uint64_t cache_bytes_ = 0;  // of the device
  std::vector<HostTensor> inputs_, want_;
};

}  // namespace

std::unique_ptr<Judge> make_engine_judge(JudgedTarget target) {
  return std::make_unique<EngineJudge>(std::move(target));
}

}  // namespace kiln
