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

#include "apps/engine-run/lent_tensors.h"

namespace kiln::run {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

struct Query {
  Clock::time_point begin, end;
};

// What the callers share.
struct Course {
  Course(const BenchmarkOptions& o, const Engine& e, const Watch& w)
      : options(o), engine(e), watch(w), start(o.threads) {}

  const BenchmarkOptions& options;
  const Engine& engine;
  const Watch& watch;
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

// One caller and its tensors.
struct Caller {
  LentTensors inputs, outputs;
  std::vector<Query> log;
  bool watches = false;
};

void call(Course& course, const Caller& caller) {
  if (auto done = course.engine.infer(caller.inputs.tensors, caller.outputs.tensors); !done.ok()) {
    course.fail(std::move(done).error());
  }
}

void warm_up(Course& course, const Caller& caller) {
  const auto begin = Clock::now();
  do {
    call(course, caller);
    ++course.warmups;
  } while (!course.stopped && seconds(Clock::now() - begin) * 1000 < course.options.warmup_ms);
}

void measure(Course& course, Caller& caller) {
  const auto begin = Clock::now();
  while (!course.stopped) {
    Query query;
    query.begin = Clock::now();
    if (seconds(query.begin - begin) >= course.options.duration_s &&
        course.queries >= course.options.iterations) {
      return;
    }
    ++course.queries;
    call(course, caller);
    query.end = Clock::now();
    caller.log.push_back(query);
  }
}

void run_caller(Course& course, Caller& caller) {
  constexpr size_t kRoom = 1 << 16;  // growing the log would show in a latency
  caller.log.reserve(kRoom);
  warm_up(course, caller);
  if (caller.watches) course.watch.begin();
  course.start.arrive_and_wait();
  measure(course, caller);
  if (caller.watches) course.watch.end();
}

Measurements collect(const std::vector<Caller>& callers) {
  std::vector<Query> all;
  for (const Caller& caller : callers) {
    all.insert(all.end(), caller.log.begin(), caller.log.end());
  }
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

// What the parts of a request take, one request at a time. Nothing on target host.
Result<> time_parts(const Engine& engine, const Caller& caller, double most_s, Measurements& m) {
  constexpr size_t kRequests = 200, kFewest = 10;
  if (engine.info().target != "cuda") return Ok();
  KILN_ASSIGN_OR_RETURN(ExecutionContext context, engine.create_context());
  KILN_RETURN_IF_ERROR(context.enqueue(caller.inputs.tensors, caller.outputs.tensors));
  const auto begin = Clock::now();
  while (m.device_ms.size() < kRequests &&
         (m.device_ms.size() < kFewest || seconds(Clock::now() - begin) < most_s)) {
    KILN_ASSIGN_OR_RETURN(const RequestTimes times,
                          context.time_request(caller.inputs.tensors, caller.outputs.tensors));
    m.device_ms.push_back(times.compute_us / 1000);
    m.copy_in_ms.push_back(times.copy_in_us / 1000);
    m.copy_out_ms.push_back(times.copy_out_us / 1000);
    m.enqueue_ms.push_back(times.enqueue_us / 1000);
  }
  return Ok();
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
                               std::span<const TensorInfo> outputs, const BenchmarkOptions& options,
                               const Watch& watch) {
  std::vector<Caller> callers(static_cast<size_t>(options.threads));
  for (Caller& caller : callers) {
    KILN_ASSIGN_OR_RETURN(caller.inputs, lend_copies(engine, inputs, options.memory));
    KILN_ASSIGN_OR_RETURN(caller.outputs, lend_room(engine, outputs, options.memory));
  }
  callers.front().watches = true;
  Course course(options, engine, watch);
  {
    std::vector<std::jthread> threads;
    for (Caller& caller : callers) {
      threads.emplace_back([&] { run_caller(course, caller); });
    }
  }
  if (course.failure) return *std::move(course.failure);
  Measurements measurements = collect(callers);
  measurements.warmup_queries = course.warmups;
  KILN_RETURN_IF_ERROR(time_parts(engine, callers.front(), options.duration_s, measurements));
  return measurements;
}

}  // namespace kiln::run
