#include "apps/engine-run/benchmark.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

namespace kiln::run {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

struct Query {
  Clock::time_point begin, end;
};

// What the callers share.
struct Course {
  Course(const BenchmarkOptions& o, const Engine& e, std::span<const Tensor> i)
      : options(o), engine(e), inputs(i), start(o.threads) {}

  const BenchmarkOptions& options;
  const Engine& engine;
  std::span<const Tensor> inputs;
  std::barrier<> start;
  std::atomic<int64_t> warmups = 0, queries = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::optional<Error> failure;  // guarded by mutex

  void fail(Error error) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::move(error);
    stopped = true;
  }
};

void call(Course& course, std::span<const Tensor> outputs) {
  if (auto done = course.engine.infer(course.inputs, outputs); !done.ok()) {
    course.fail(std::move(done).error());
  }
}

void warm_up(Course& course, std::span<const Tensor> outputs) {
  const auto begin = Clock::now();
  do {
    call(course, outputs);
    ++course.warmups;
  } while (!course.stopped && seconds(Clock::now() - begin) * 1000 < course.options.warmup_ms);
}

void measure(Course& course, std::span<const Tensor> outputs, std::vector<Query>& log) {
  const auto begin = Clock::now();
  while (!course.stopped) {
    Query query;
    query.begin = Clock::now();
    if (seconds(query.begin - begin) >= course.options.duration_s &&
        course.queries >= course.options.iterations) {
      return;
    }
    ++course.queries;
    call(course, outputs);
    query.end = Clock::now();
    log.push_back(query);
  }
}

void run_caller(Course& course, std::span<const Tensor> outputs, std::vector<Query>& log) {
  constexpr size_t kRoom = 1 << 16;  // growing the log would show in a latency
  log.reserve(kRoom);
  warm_up(course, outputs);
  course.start.arrive_and_wait();
  measure(course, outputs, log);
}

Measurements collect(const std::vector<std::vector<Query>>& logs) {
  std::vector<Query> all;
  for (const auto& log : logs) all.insert(all.end(), log.begin(), log.end());
  std::sort(all.begin(), all.end(),
            [](const Query& a, const Query& b) { return a.begin < b.begin; });
  Measurements m;
  if (all.empty()) return m;
  auto last = all.front().end;
  for (const Query& query : all) {
    m.latency_ms.push_back(seconds(query.end - query.begin) * 1000);
    last = std::max(last, query.end);
  }
  m.wall_s = seconds(last - all.front().begin);
  return m;
}

// What the device alone takes for the request, a run at a time. Empty on target host.
Result<std::vector<double>> device_times(const Engine& engine, std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs) {
  constexpr int kRuns = 200;
  std::vector<double> times;
  if (engine.info().target != "cuda") return times;
  KILN_ASSIGN_OR_RETURN(const size_t point, engine.shape_point(inputs));
  KILN_ASSIGN_OR_RETURN(ExecutionContext context, engine.create_context());
  KILN_RETURN_IF_ERROR(context.enqueue(inputs, outputs));
  for (int i = 0; i < kRuns; ++i) {
    KILN_ASSIGN_OR_RETURN(const double us, context.time_on_device(point, 1));
    times.push_back(us / 1000);
  }
  return times;
}

}  // namespace

std::vector<std::string> machine_warnings(int threads) {
  std::vector<std::string> warnings;
  const auto cores = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  double load = 0;
  char text[160];
  if (getloadavg(&load, 1) == 1 && load > 0.5 * cores) {
    std::snprintf(text, sizeof text,
                  "the machine was busy before the benchmark: a load of %.1f on %.0f cores", load,
                  cores);
    warnings.push_back(text);
  }
  if (threads > cores) {
    std::snprintf(text, sizeof text,
                  "%d threads share %.0f cores: latencies include waiting for a core", threads,
                  cores);
    warnings.push_back(text);
  }
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string governor;
  if (file >> governor && governor != "performance") {
    warnings.push_back("the CPU's frequency governor is '" + governor +
                       "', expected 'performance' for steady clocks");
  }
  return warnings;
}

Result<Measurements> benchmark(const Engine& engine, std::span<const Tensor> inputs,
                               std::span<const TensorInfo> outputs,
                               const BenchmarkOptions& options) {
  const auto callers = static_cast<size_t>(options.threads);
  std::vector<std::vector<NamedArray>> storage(callers);
  std::vector<std::vector<Tensor>> targets(callers);
  for (size_t i = 0; i < callers; ++i) {
    for (const TensorInfo& output : outputs) {
      KILN_ASSIGN_OR_RETURN(auto array, make_array(output.name, output.type));
      storage[i].push_back(std::move(array));
    }
    targets[i] = views(storage[i]);
  }
  Course course(options, engine, inputs);
  std::vector<std::vector<Query>> logs(callers);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < callers; ++i) {
      threads.emplace_back([&, i] { run_caller(course, targets[i], logs[i]); });
    }
  }
  if (course.failure) return *std::move(course.failure);
  Measurements measurements = collect(logs);
  measurements.warmup_queries = course.warmups;
  KILN_ASSIGN_OR_RETURN(measurements.device_ms, device_times(engine, inputs, targets[0]));
  return measurements;
}

}  // namespace kiln::run
