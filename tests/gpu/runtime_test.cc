// The runtime's promises on a GPU: threads, streams, addresses, failures, memory given back.
#include <chrono>

#include "tests/gpu/gpu_fixture.h"

namespace kiln::testing {
namespace {

using Runtime = OnGpu;

TEST_F(Runtime, ThreadsGetWhatASingleOneGets) {
  check_threads(subject_of(small_engine("digits")), 16, 1000);
}

TEST_F(Runtime, StreamsDoNotMeet) {
  check_streams(subject_of(small_engine("digits")));
  check_streams(subject_of(small_engine("bert")));
}

TEST_F(Runtime, TensorsMayLieAnywhere) {
  for (const EngineRecipe& recipe : small_engines()) {
    SCOPED_TRACE(recipe.name);
    check_addresses(subject_of(recipe), 50);
  }
}

TEST_F(Runtime, OverlappingKernelsGiveTheSameBits) {
  for (const EngineRecipe& recipe : small_engines()) {
    SCOPED_TRACE(recipe.name);
    check_programmatic_launch(subject_of(recipe));
  }
}

// A graph's launch takes a few microseconds of the host's time, as does each copy of a padded
// request's tensors; most of the rest is ours.
TEST_F(Runtime, EnqueueReturnsSoon) {
  for (const EngineRecipe& recipe : small_engines()) {
    const Subject subject = subject_of(recipe);
    const int64_t whole = recipe.most_rows();
    // The fewest that the largest bucket serves.
    const int64_t padded = recipe.batches.empty() ? whole / 2 + 1 : 1;
    for (const int64_t rows : {whole, padded}) {
      const double us = measure_enqueue(subject, rows);
      std::printf("enqueue, %-20s %2d of %2d rows: %.2f us\n", recipe.name.c_str(),
                  static_cast<int>(rows), static_cast<int>(whole), us);
      EXPECT_LT(us, rows == whole ? 50 : 150) << recipe.name << ", " << rows << " rows";
    }
  }
}

TEST_F(Runtime, SurvivesTheFailureOfEveryCall) {
  const auto begin = std::chrono::steady_clock::now();
  const int calls = check_failures(subject_of(small_engine("digits-fp16")),
                                   {WrappedLibraries::Failure::kOutOfMemory});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(calls, 60);
  std::printf("calls that were made to fail: %d, in %.1f s\n", calls, taken.count());
}

TEST_F(Runtime, ALostContextSaysSo) { check_lost_context(subject_of(small_engine("digits"))); }

TEST_F(Runtime, LoadingAHundredTimesKeepsNothing) {
  check_load_cycles(subject_of(small_engine("digits-fp16")), 100);
  check_load_cycles(subject_of(small_engine("bert")), 20);
}

// Nothing else holds the GPU's context: it goes with the engine, and comes back with the next.
class ReleasedContext : public ::testing::Test {};

TEST_F(ReleasedContext, ComesBack) {
  if (const std::string reason = no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  const auto file = build_engine(small_engine("digits-fp16"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<Block> first;
  for (int i = 0; i < 5; ++i) {
    const auto engine = Engine::load(*file);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto answer = infer(*engine, make_up_request(*engine, 1, 0));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    if (first.empty()) first = answer->outputs;
    EXPECT_TRUE(answer->outputs == first) << "load " << i;
  }
}

}  // namespace
}  // namespace kiln::testing
