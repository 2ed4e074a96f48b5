#include "tests/engine/cuda/runtime_checks.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

#include "tests/engine/cuda/device_caller.h"

namespace kiln::testing {
namespace {

// A request and the answer that the engine gave when it did nothing else.
struct Known {
  MadeUpRequest request;
  std::vector<Block> outputs;
};

std::vector<Known> ask_alone(const Engine& engine, int64_t most_rows) {
  std::vector<Known> known;
  for (int64_t rows : {1, 2, 3, 5, 8, 13, 21, 37, 48, 64}) {
    for (uint64_t seed = 0; seed < 3 && rows <= most_rows; ++seed) {
      MadeUpRequest request = make_up_request(engine, rows, 100 * seed);
      auto answer = infer(engine, request);
      EXPECT_TRUE(answer.ok()) << answer.error().message;
      if (answer.ok()) known.push_back({std::move(request), std::move(answer->outputs)});
    }
  }
  return known;
}

Result<std::shared_ptr<const cuda::Device>> open_device(const Subject& subject) {
  return cuda::Device::open(0, subject.libraries);
}

size_t free_bytes(const cuda::Device& device) {
  const cuda::CurrentDevice current(device);
  size_t free = 0, total = 0;
  EXPECT_EQ(device.driver().mem_get_info(&free, &total), CUDA_SUCCESS);
  return free;
}

// How a thread calls the engine; each returns what it got.
using Caller = std::function<Result<Answer>(const MadeUpRequest&, uint64_t shift)>;

Result<Caller> device_infer_caller(const Engine& engine, DeviceCaller made) {
  auto caller = std::make_shared<DeviceCaller>(std::move(made));
  return Caller([&engine, caller](const MadeUpRequest& request, uint64_t shift) -> Result<Answer> {
    KILN_RETURN_IF_ERROR(caller->upload(engine, request, shift));
    KILN_RETURN_IF_ERROR(caller->finish());
    KILN_RETURN_IF_ERROR(engine.infer(caller->inputs(), caller->outputs()));
    return caller->download();
  });
}

Result<Caller> stream_caller(const Engine& engine, DeviceCaller made) {
  auto caller = std::make_shared<DeviceCaller>(std::move(made));
  KILN_ASSIGN_OR_RETURN(ExecutionContext created, engine.create_context());
  auto context = std::make_shared<ExecutionContext>(std::move(created));
  return Caller([&engine, caller, context](const MadeUpRequest& request,
                                           uint64_t shift) -> Result<Answer> {
    KILN_RETURN_IF_ERROR(caller->upload(engine, request, shift));
    KILN_RETURN_IF_ERROR(context->enqueue(caller->inputs(), caller->outputs(), caller->stream()));
    return caller->download();
  });
}

Result<Caller> make_caller(int kind, const Engine& engine, const Subject& subject,
                           const std::shared_ptr<const cuda::Device>& device) {
  if (kind == 0) {
    return Caller(
        [&engine](const MadeUpRequest& request, uint64_t) { return infer(engine, request); });
  }
  KILN_ASSIGN_OR_RETURN(DeviceCaller made, DeviceCaller::make(device, subject.caller_bytes));
  return kind == 1 ? device_infer_caller(engine, std::move(made))
                   : stream_caller(engine, std::move(made));
}

// What the threads of one check found; the first complaint is kept.
struct Complaints {
  std::atomic<int> count = 0;
  std::mutex mutex;
  std::string first;

  void add(const std::string& text) {
    if (count++ > 0) return;
    const std::lock_guard lock(mutex);
    first = text;
  }
};

void call_at_random(const Caller& call, const std::vector<Known>& known, int calls, uint64_t seed,
                    Complaints& complaints) {
  for (int i = 0; i < calls; ++i) {
    const double pick = number_at(seed, static_cast<uint64_t>(i));
    const Known& asked = known[static_cast<size_t>(pick * static_cast<double>(known.size()))];
    const auto answer = call(asked.request, static_cast<uint64_t>(i) % 5);
    const std::string label =
        "thread " + std::to_string(seed) + ", call " + std::to_string(i) + ": ";
    if (!answer.ok()) {
      complaints.add(label + answer.error().message);
    } else if (answer->outputs != asked.outputs) {
      complaints.add(label + std::to_string(asked.request.rows) + " rows differ");
    }
  }
}

}  // namespace

Result<Engine> load(const Subject& subject, int contexts) {
  LoadOptions options;
  options.contexts = contexts;
  options.cuda_libraries = subject.libraries;
  return subject.load(options);
}

void check_programmatic_launch(const Subject& subject) {
  LoadOptions options;
  options.cuda_libraries = subject.libraries;
  options.programmatic_launch = false;
  const auto alone = subject.load(options);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  const std::vector<Known> known = ask_alone(*alone, subject.most_rows);
  ASSERT_FALSE(known.empty());
  const auto engine = load(subject, 1);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  for (int round = 0; round < 10; ++round) {
    for (const Known& asked : known) {
      const auto answer = infer(*engine, asked.request);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      EXPECT_TRUE(answer->outputs == asked.outputs) << asked.request.rows << " rows differ";
    }
  }
}

double measure_enqueue(const Subject& subject, int64_t rows) {
  using Clock = std::chrono::steady_clock;
  const auto engine = load(subject, 1);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  const auto device = open_device(subject);
  auto caller = DeviceCaller::make(*device, subject.caller_bytes);
  auto context = engine->create_context();
  EXPECT_TRUE(caller.ok() && context.ok());
  EXPECT_TRUE(caller->upload(*engine, make_up_request(*engine, rows, 0), 0).ok());
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    const Clock::time_point begin = Clock::now();
    const auto ran = context->enqueue(caller->inputs(), caller->outputs(), caller->stream());
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    if (i % 20 != 0) continue;
    EXPECT_TRUE(caller->finish().ok());  // a full queue would make it wait
  }
  EXPECT_TRUE(caller->finish().ok());
  std::nth_element(times.begin(), times.begin() + 500, times.end());
  return times[500];
}

void check_threads(const Subject& subject, int threads, int calls) {
  const auto device = open_device(subject);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto engine = load(subject, 4);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const std::vector<Known> known = ask_alone(*engine, subject.most_rows);
  ASSERT_FALSE(known.empty());
  std::vector<Caller> callers;
  for (int i = 0; i < threads; ++i) {
    auto caller = make_caller(i % 3, *engine, subject, *device);
    ASSERT_TRUE(caller.ok()) << caller.error().message;
    callers.push_back(*std::move(caller));
  }
  Complaints complaints;
  std::barrier start(threads);
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        start.arrive_and_wait();
        call_at_random(callers[static_cast<size_t>(i)], known, calls, static_cast<uint64_t>(i),
                       complaints);
      });
    }
  }
  EXPECT_EQ(complaints.count, 0) << "first: " << complaints.first;
}

void check_streams(const Subject& subject) {
  const auto device = open_device(subject);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto engine = load(subject, 1);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const std::vector<Known> known = ask_alone(*engine, subject.most_rows);
  ASSERT_FALSE(known.empty());
  auto a = DeviceCaller::make(*device, subject.caller_bytes),
       b = DeviceCaller::make(*device, subject.caller_bytes);
  ASSERT_TRUE(a.ok() && b.ok());
  auto first = engine->create_context(), second = engine->create_context();
  ASSERT_TRUE(first.ok() && second.ok());
  const auto run = [&](DeviceCaller& caller, ExecutionContext& context, const Known& asked) {
    auto put = caller.upload(*engine, asked.request, 1);
    if (put.ok()) put = context.enqueue(caller.inputs(), caller.outputs(), caller.stream());
    EXPECT_TRUE(put.ok()) << put.error().message;
  };
  const auto expect = [](DeviceCaller& caller, const Known& asked) {
    const auto answer = caller.download();
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_TRUE(answer->outputs == asked.outputs) << asked.request.rows << " rows";
  };
  for (size_t i = 0; i < 100; ++i) {
    const Known &one = known[i % known.size()], &other = known[(7 * i + 3) % known.size()];
    run(*a, *first, one);
    run(*b, i % 2 == 0 ? *second : *first, other);  // every other time one context, two streams
    expect(*b, other);
    expect(*a, one);
  }
}

void check_addresses(const Subject& subject, int calls) {
  const auto device = open_device(subject);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto engine = load(subject, 1);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const std::vector<Known> known = ask_alone(*engine, subject.most_rows);
  ASSERT_FALSE(known.empty());
  std::vector<DeviceCaller> held;  // so that the next one gets other memory
  for (int i = 0; i < calls; ++i) {
    const Known& asked = known[static_cast<size_t>(i) % known.size()];
    auto caller = DeviceCaller::make(*device, subject.caller_bytes);
    ASSERT_TRUE(caller.ok()) << caller.error().message;
    auto ran = caller->upload(*engine, asked.request, static_cast<uint64_t>(i));
    if (ran.ok()) ran = caller->finish();
    if (ran.ok()) ran = engine->infer(caller->inputs(), caller->outputs());
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    const auto answer = caller->download();
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_TRUE(answer->outputs == asked.outputs) << asked.request.rows << " rows, call " << i;
    held.push_back(*std::move(caller));
    if (held.size() > 7) held.erase(held.begin() + i % 7);
  }
}

int check_failures(const Subject& subject,
                   std::initializer_list<WrappedLibraries::Failure> failures) {
  WrappedLibraries& libraries = *subject.libraries;
  std::vector<Block> expected;
  const auto attempt = [&]() -> Result<> {
    KILN_ASSIGN_OR_RETURN(const Engine engine, load(subject, 1));
    const MadeUpRequest request =
        make_up_request(engine, std::min<int64_t>(3, subject.most_rows), 0);
    KILN_ASSIGN_OR_RETURN(Answer answer, infer(engine, request));
    if (expected.empty()) expected = answer.outputs;
    EXPECT_TRUE(answer.outputs == expected);
    return Ok();
  };
  const int live = libraries.live(), calls_before = libraries.calls();
  auto first = attempt();
  EXPECT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(libraries.live(), live);
  const int calls = libraries.calls() - calls_before;
  using Failure = WrappedLibraries::Failure;
  for (const Failure failure : failures) {
    for (int n = 0; n < calls && !::testing::Test::HasFailure(); ++n) {
      libraries.fail_call(n, failure);
      const auto ran = attempt();
      const std::string what = "call " + std::to_string(n) + ", " + libraries.failed();
      libraries.fail_nothing();
      EXPECT_FALSE(ran.ok()) << what;
      if (!ran.ok()) {
        EXPECT_EQ(ran.error().code,
                  failure == Failure::kOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice)
            << what << ": " << ran.error().message;
      }
      EXPECT_EQ(libraries.live(), live) << what;
      const auto again = attempt();
      EXPECT_TRUE(again.ok()) << "after " << what << ": " << again.error().message;
    }
  }
  return calls;
}

void check_lost_context(const Subject& subject) {
  WrappedLibraries& libraries = *subject.libraries;
  const auto engine = load(subject, 1);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const MadeUpRequest request = make_up_request(*engine, 1, 0);
  const auto before = infer(*engine, request);
  ASSERT_TRUE(before.ok()) << before.error().message;
  libraries.fail_function("cuGraphLaunch", WrappedLibraries::Failure::kLaunchFailed);
  const auto failed = infer(*engine, request);
  libraries.fail_nothing();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kDevice) << failed.error().message;
  const auto lost = infer(*engine, request);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, ErrorCode::kDevice);
  EXPECT_NE(lost.error().message.find("the context is lost"), std::string::npos)
      << lost.error().message;
  const auto another = load(subject, 1);
  ASSERT_TRUE(another.ok()) << another.error().message;
  const auto after = infer(*another, request);
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_TRUE(after->outputs == before->outputs);
}

void check_load_cycles(const Subject& subject, int cycles) {
  const auto device = open_device(subject);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto cycle = [&] {
    const auto engine = load(subject, 2);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto answer = infer(*engine, make_up_request(*engine, 1, 0));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
  };
  cycle();  // the libraries load their kernels, which stay
  const size_t before = free_bytes(**device);
  const int live = subject.libraries->live();
  for (int i = 0; i < cycles && !::testing::Test::HasFailure(); ++i) cycle();
  const size_t after = free_bytes(**device);
  EXPECT_GE(after, before) << before - after << " bytes of device memory are gone";
  EXPECT_EQ(subject.libraries->live(), live);
}

MemoryUse measure_memory(const Subject& subject, int contexts) {
  MemoryUse used;
  const auto device = open_device(subject);
  EXPECT_TRUE(device.ok());
  const cuda::CurrentDevice current(**device);
  const auto before = static_cast<int64_t>(free_bytes(**device));
  subject.libraries->start_booking();
  const auto engine = load(subject, contexts);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return used;
  for (int64_t rows = 1; rows <= subject.most_rows; rows *= 2) {
    const auto answer = infer(*engine, make_up_request(*engine, rows, 0));
    EXPECT_TRUE(answer.ok()) << answer.error().message;
  }
  used.by_function = subject.libraries->stop_booking();
  used.measured = before - static_cast<int64_t>(free_bytes(**device));
  const EngineInfo& info = engine->info();
  used.planned =
      static_cast<int64_t>(info.shared_bytes) + contexts * static_cast<int64_t>(info.context_bytes);
  return used;
}

}  // namespace kiln::testing
