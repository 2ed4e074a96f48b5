#include "formats/timing_cache/timing_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/scratch_folder.h"

namespace kiln {
namespace {

TimingCache two_environments() {
  TimingCache cache;
  cache.record("cpu 1", "matmul f32[8x8]", "onednn/default", {12.5, 0.25, true, 1e-6, 1e-5, ""});
  cache.record("cpu 1", "matmul f32[8x8]", "loop/naive", {99, 1, false, 0, 0, "took too long"});
  cache.record("cpu 2", "matmul f32[8x8]", "onednn/default", {7, 0, true, 0, 0, ""});
  TimingCache::Environment& gpu = cache.environments["gpu"];
  gpu.device_name = "NVIDIA H200";
  gpu.device = {{"compute_capability", 90}, {"memory_bytes", uint64_t{1} << 37}};
  gpu.answers["algorithms for m"] = {{"a66", "", "a\"7\n"}, ""};
  gpu.answers["algorithms for n"] = {{}, "there is none"};
  return cache;
}

TEST(TimingCache, FindsWhatWasRecorded) {
  const TimingCache cache = two_environments();
  ASSERT_NE(cache.find("cpu 1", "matmul f32[8x8]", "onednn/default"), nullptr);
  EXPECT_EQ(cache.find("cpu 1", "matmul f32[8x8]", "onednn/default")->median_us, 12.5);
  EXPECT_EQ(cache.find("cpu 3", "matmul f32[8x8]", "onednn/default"), nullptr);
  EXPECT_EQ(cache.find("cpu 1", "matmul f32[9x8]", "onednn/default"), nullptr);
  EXPECT_EQ(cache.find("cpu 1", "matmul f32[8x8]", "other"), nullptr);
}

TEST(TimingCache, SurvivesAFile) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(save_timing_cache(folder / "t.json", two_environments()));
  const auto loaded = load_timing_cache(folder / "t.json");
  EXPECT_EQ(loaded.cache, two_environments());
  EXPECT_TRUE(loaded.notes.empty());
}

Timing timing_of(double median_us) {
  Timing timing;
  timing.median_us = median_us;
  timing.verified = true;
  return timing;
}

TEST(TimingCache, KeepsWhatOthersSavedMeanwhile) {
  const testing::ScratchFolder folder;
  TimingCache first, second, both;
  first.record("gpu", "a", "x", timing_of(1));
  first.record("gpu", "b", "x", timing_of(2));
  first.environments["gpu"].answers["q"] = {{"1"}, ""};
  second.record("gpu", "a", "x", timing_of(3));
  second.record("gpu", "a", "y", timing_of(4));
  second.record("host", "a", "x", timing_of(5));
  second.environments["gpu"].answers["r"] = {{"2"}, ""};
  second.environments["gpu"].device_name = "GPU";
  ASSERT_TRUE(save_timing_cache(folder / "t.json", first));
  ASSERT_TRUE(save_timing_cache(folder / "t.json", second));
  both = second;
  both.record("gpu", "b", "x", timing_of(2));
  both.environments["gpu"].answers["q"] = {{"1"}, ""};
  EXPECT_EQ(load_timing_cache(folder / "t.json").cache, both);
}

TEST(TimingCache, LosesNothingOfManyThreads) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(save_timing_cache(folder / "t.json", {}));  // a link to nothing would be replaced
  std::filesystem::create_symlink(folder / "t.json", folder / "link.json");
  TimingCache all;
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 8; ++i) {
    all.record("gpu", "r" + std::to_string(i), "x", timing_of(i));
    threads.emplace_back([&folder, &failed, i] {
      TimingCache mine;
      mine.record("gpu", "r" + std::to_string(i), "x", timing_of(i));
      const auto saved = save_timing_cache(folder / (i % 2 == 0 ? "t.json" : "link.json"), mine);
      if (!saved.ok()) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(load_timing_cache(folder / "t.json").cache, all);
}

TEST(TimingCache, LeavesWhatIsNoTimingCache) {
  const testing::ScratchFolder folder;
  folder.write("t.json", R"({"kind": "something-else", "schema": 1})");
  const auto saved = save_timing_cache(folder / "t.json", two_environments());
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(saved.error().message.find("t.json"), std::string::npos) << saved.error().message;
  EXPECT_TRUE(load_timing_cache(folder / "t.json").foreign);
}

TEST(TimingCache, OrderOfRecordingDoesNotShow) {
  TimingCache other;
  const TimingCache cache = two_environments();
  for (auto e = cache.environments.rbegin(); e != cache.environments.rend(); ++e) {
    TimingCache::Environment& copy = other.environments[e->first];
    copy.device_name = e->second.device_name;
    copy.device = e->second.device;
    copy.answers = e->second.answers;
    for (const auto& [region, candidates] : e->second.timings) {
      for (const auto& [candidate, timing] : candidates) {
        other.record(e->first, region, candidate, timing);
      }
    }
  }
  EXPECT_EQ(to_json(other), to_json(cache));
}

TEST(TimingCache, AbsentFileIsEmptyWithoutANote) {
  const testing::ScratchFolder folder;
  const auto loaded = load_timing_cache(folder / "absent.json");
  EXPECT_TRUE(loaded.cache.environments.empty());
  EXPECT_TRUE(loaded.notes.empty());
}

TEST(TimingCache, NotesTimingsOfOtherEnvironments) {
  const TimingCache cache = two_environments();
  EXPECT_EQ(note_on_environment(cache, "cpu 2"), "");
  EXPECT_EQ(note_on_environment({}, "cpu 2"), "");
  EXPECT_EQ(
      note_on_environment(cache, "cpu 3"),
      "has no timings for 'cpu 3', only for 'cpu 1', 'cpu 2', 'gpu'; they are kept and not used");
}

TEST(TimingCache, IgnoresDamageWithANote) {
  const std::string good = to_json(two_environments());
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("null"),
        good.substr(0, good.size() / 2), std::string(R"({"kind": "report", "schema": 1})"),
        std::string(R"({"kind": "kiln-timing-cache", "schema": 3, "environments": {}})"),
        std::string(R"({"kind": "kiln-timing-cache", "schema": 2, "environments": 3})"),
        R"({"kind": "kiln-timing-cache", "schema": )" + deep + "}"}) {
    const auto loaded = parse_timing_cache(text);
    EXPECT_TRUE(loaded.cache.environments.empty()) << text.substr(0, 100);
    EXPECT_EQ(loaded.notes.size(), 1u) << text.substr(0, 100);
  }
}

TEST(TimingCache, KnowsWhatIsNotItsToOverwrite) {
  const testing::ScratchFolder folder;
  const auto foreign = [&](std::string_view text) {
    testing::write_bytes(folder / "t", std::as_bytes(std::span(text)));
    return load_timing_cache(folder / "t").foreign;
  };
  EXPECT_FALSE(load_timing_cache(folder / "absent").foreign);
  EXPECT_TRUE(load_timing_cache(folder.path()).foreign);
  EXPECT_FALSE(foreign(""));
  EXPECT_FALSE(foreign(to_json(two_environments())));
  EXPECT_TRUE(foreign("my diary"));
  EXPECT_TRUE(foreign(R"({"kind": "report", "schema": 1})"));
  EXPECT_TRUE(foreign(R"({"kind": "kiln-timing-cache", "schema": 3})"));
}

TEST(TimingCache, NamesTheFileInNotes) {
  const testing::ScratchFolder folder;
  testing::write_bytes(folder / "t.json", std::as_bytes(std::span("{", 1)));
  const auto loaded = load_timing_cache(folder / "t.json");
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_NE(loaded.notes[0].find("t.json' is damaged and was ignored"), std::string::npos);
}

TEST(TimingCache, LeavesDamagedEntriesOut) {
  for (const char* field : {"median_us", "spread_us", "verified", "error", "max_abs_error"}) {
    for (const nlohmann::json& value : {nlohmann::json(), nlohmann::json(-1), nlohmann::json({})}) {
      auto document = nlohmann::json::parse(to_json(two_environments()));
      document["environments"]["cpu 1"]["timings"]["matmul f32[8x8]"]["loop/naive"][field] = value;
      const auto loaded = parse_timing_cache(document.dump());
      EXPECT_EQ(loaded.cache.find("cpu 1", "matmul f32[8x8]", "loop/naive"), nullptr) << field;
      EXPECT_NE(loaded.cache.find("cpu 1", "matmul f32[8x8]", "onednn/default"), nullptr);
      ASSERT_EQ(loaded.notes.size(), 1u);
      EXPECT_EQ(loaded.notes[0], "1 damaged entries were ignored");
    }
  }
}

TEST(TimingCache, LeavesDamagedAnswersAndDevicesOut) {
  for (const char* answer :
       {"3", "{}", R"({"values": ["x"]})", R"({"values": [1], "refusal": ""})",
        R"({"values": "x", "refusal": ""})", R"({"values": [], "refusal": null})"}) {
    auto document = nlohmann::json::parse(to_json(two_environments()));
    nlohmann::json& gpu = document["environments"]["gpu"];
    gpu["answers"]["algorithms for m"] = nlohmann::json::parse(answer);
    gpu["device"] = {{"name", 3}, {"compute_capability", -90}, {"memory_bytes", 7}};
    const auto loaded = parse_timing_cache(document.dump());
    const TimingCache::Environment& read = loaded.cache.environments.at("gpu");
    EXPECT_EQ(read.answers.size(), 1u) << answer;
    EXPECT_EQ(read.device_name, "");
    EXPECT_EQ(read.device, (std::map<std::string, uint64_t>{{"memory_bytes", 7}}));
    EXPECT_EQ(loaded.notes.size(), 1u);
  }
}

// As Kiln wrote them before there were answers and devices.
TEST(TimingCache, ReadsSchema1) {
  const auto loaded = parse_timing_cache(R"({"environments": {"cpu 1": {"matmul f32[8x8]": {
    "onednn/default": {"error": "", "max_abs_error": 0.5, "max_rel_error": 0.25, "median_us": 12.5,
                       "spread_us": 2, "verified": true}}}},
    "kind": "kiln-timing-cache", "schema": 1})");
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_NE(loaded.notes[0].find("has schema 1, of an older Kiln"), std::string::npos);
  EXPECT_FALSE(loaded.foreign);  // the next save brings it to schema 2
  TimingCache want;
  want.record("cpu 1", "matmul f32[8x8]", "onednn/default", {12.5, 2, true, 0.5, 0.25, ""});
  EXPECT_EQ(loaded.cache, want);
}

TEST(TimingCache, DropsTimesThatAreNotFinite) {
  TimingCache cache = two_environments();
  cache.record("cpu 1", "r", "c", {std::nan(""), 0, true, 0, 0, ""});
  cache.record("cpu 1", "r", "d", {1, INFINITY, true, 0, 0, ""});
  EXPECT_EQ(parse_timing_cache(to_json(cache)).cache, two_environments());
}

}  // namespace
}  // namespace kiln
