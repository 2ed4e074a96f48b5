#include "builder/tactics/engine_judge.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "builder/emit/emit_plan.h"
#include "builder/verify/compare.h"
#include "builder/verify/random_inputs.h"
#include "engine/engine.h"
#include "formats/engine_file/write_engine.h"

namespace kiln {
namespace {

constexpr size_t kRedZone = 256;  // bytes on each side of an output
constexpr std::byte kPoison{0xCB};
constexpr double kHopeless = 3.0;  // times slower than the best: a few runs say enough

// An output buffer between red zones, all poisoned.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(const TensorType& type)
      : bytes_(static_cast<size_t>(type.bytes())), block_(bytes_ + 2 * kRedZone, kPoison) {}
  std::byte* data() { return block_.data() + kRedZone; }
  bool intact() const {
    const auto clean = [](std::byte byte) { return byte == kPoison; };
    return std::all_of(block_.begin(), block_.begin() + kRedZone, clean) &&
           std::all_of(block_.end() - kRedZone, block_.end(), clean);
  }

 private:
  size_t bytes_;
  std::vector<std::byte> block_;
};

double microseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

struct Spread {
  double median = 0, spread = 0;  // spread: half the distance between the quartiles
};

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

// Runs of a graph on the device: at least 5 together, about 2 ms; the median of 7 such.
Result<Spread> time_on_device(ExecutionContext& context, double estimate_us) {
  constexpr int kSamples = 7;
  constexpr double kSampleUs = 2000;
  const int runs = std::clamp(static_cast<int>(kSampleUs / std::max(estimate_us, 0.1)), 5, 200);
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) {
    KILN_ASSIGN_OR_RETURN(const double us, context.time_on_device(0, runs));
    times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  return Spread{times[kSamples / 2], (times[kSamples * 3 / 4] - times[kSamples / 4]) / 2};
}

class EngineJudge : public Judge {
 public:
  explicit EngineJudge(JudgedTarget target) : target_(std::move(target)) {
    target_.load.allow_unverified = true;
    target_.load.check_weights = false;
  }

  Result<> begin(const TacticQuery& query) override {
    graph_ = ir::Graph();
    const ir::Graph& body = *query.region.body;
    std::vector<std::optional<HostTensor>> known;
    for (size_t i = 0; i < query.inputs.size(); ++i) {
      known.emplace_back();
      if (query.constants[i]) known.back() = HostTensor{query.inputs[i], *query.constants[i]};
    }
    inputs_ = random_inputs(body, 17, known);
    KILN_ASSIGN_OR_RETURN(want_, run_reference(body, inputs_, target_.reference));
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
    check(*engine, uses_tf32(lowered), timing);
    if (!timing.error.empty()) return timing;
    if (target_.origin.target == plan::Target::kCuda) {
      measure_on_device(*engine, best_us, timing);
    } else {
      measure(*engine, best_us, timing);
    }
    return timing;
  }

 private:
  Result<Engine> make_engine(const Lowered& lowered) {
    Schedule schedule;
    schedule.graph = graph_;
    schedule.point.name = "candidate";
    schedule.regions.push_back({node_, "region", false, lowered});
    PlanBuilder builder;
    builder.add_point(schedule);
    plan::Plan plan = std::move(builder).finish();
    plan.origin = target_.origin;
    KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(plan));
    return Engine::load_bytes(SharedBytes::take(std::move(bytes)), target_.load);
  }

  std::vector<Tensor> input_tensors() const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ir::Value& value = graph_.value(graph_.node(node_).inputs[i]);
      if (value.constant) continue;
      auto* data = const_cast<std::byte*>(inputs_[i].bytes.data());  // inputs are never written
      tensors.push_back({value.name, value.type, data});
    }
    return tensors;
  }

  // Tensors for the outputs, in `buffers`.
  std::vector<Tensor> output_tensors(std::vector<GuardedBuffer>& buffers) const {
    std::vector<Tensor> tensors;
    for (const HostTensor& want : want_) buffers.emplace_back(want.type);
    for (size_t i = 0; i < want_.size(); ++i) {
      tensors.push_back({"y" + std::to_string(i), want_[i].type, buffers[i].data()});
    }
    return tensors;
  }

  void check(const Engine& engine, bool tf32, Timing& timing) const {
    std::vector<GuardedBuffer> buffers;
    const auto outputs = output_tensors(buffers);
    const auto ran = engine.infer(input_tensors(), outputs);
    if (!ran.ok()) {
      timing.error = ran.error().message;
      return;
    }
    for (size_t i = 0; i < want_.size(); ++i) {
      const Comparison result = compare(want_[i].type, buffers[i].data(), want_[i].bytes.data(),
                                        accuracy_for(want_[i].type.dtype, tf32));
      timing.max_abs_error = std::max(timing.max_abs_error, result.max_abs_error);
      timing.max_rel_error = std::max(timing.max_rel_error, result.max_rel_error);
      if (!buffers[i].intact()) timing.error = "wrote outside of output " + std::to_string(i);
      if (!result.passed) timing.error = "output " + std::to_string(i) + ": " + result.worst;
    }
    timing.verified = timing.error.empty();
  }

  void measure(const Engine& engine, double best_us, Timing& timing) const {
    std::vector<GuardedBuffer> buffers;
    const auto outputs = output_tensors(buffers);
    const auto inputs = input_tensors();
    const auto run = [&] { (void)engine.infer(inputs, outputs).ok(); };
    const double first = microseconds_of(run);
    if (first > kHopeless * best_us) {
      timing.median_us = first;
      return;
    }
    const Spread spread = time_runs(run);
    timing.median_us = spread.median;
    timing.spread_us = spread.spread;
  }

  void measure_on_device(const Engine& engine, double best_us, Timing& timing) const {
    const auto timed = [&]() -> Result<> {
      KILN_ASSIGN_OR_RETURN(ExecutionContext context, engine.create_context());
      std::vector<GuardedBuffer> buffers;
      const auto outputs = output_tensors(buffers);
      KILN_RETURN_IF_ERROR(context.enqueue(input_tensors(), outputs));
      KILN_RETURN_IF_ERROR([&]() -> Result<> {
        auto warm = context.time_on_device(0, 2);
        return warm.ok() ? Ok() : Result<>(std::move(warm).error());
      }());
      KILN_ASSIGN_OR_RETURN(timing.median_us, context.time_on_device(0, 3));
      if (timing.median_us > kHopeless * best_us) return Ok();
      KILN_ASSIGN_OR_RETURN(const Spread spread, time_on_device(context, timing.median_us));
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
  std::vector<HostTensor> inputs_, want_;
};

}  // namespace

std::unique_ptr<Judge> make_engine_judge(JudgedTarget target) {
  return std::make_unique<EngineJudge>(std::move(target));
}

}  // namespace kiln
