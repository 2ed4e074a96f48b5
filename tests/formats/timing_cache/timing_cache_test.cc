#include "formats/timing_cache/timing_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/scratch_folder.h"

namespace kiln {
namespace {

TimingCache two_environments() {
  TimingCache cache;
  cache.record("cpu 1", "matmul f32[8x8]", "onednn/default", {12.5, 0.25, true, 1e-6, 1e-5, ""});
  cache.record("cpu 1", "matmul f32[8x8]", "loop/naive", {99, 1, false, 0, 0, "took too long"});
  cache.record("cpu 2", "matmul f32[8x8]", "onednn/default", {7, 0, true, 0, 0, ""});
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
  const auto loaded = load_timing_cache(folder / "t.json", "cpu 1");
  EXPECT_EQ(loaded.cache, two_environments());
  EXPECT_TRUE(loaded.notes.empty());
}

TEST(TimingCache, OrderOfRecordingDoesNotShow) {
  TimingCache other;
  const TimingCache cache = two_environments();
  for (auto e = cache.environments.rbegin(); e != cache.environments.rend(); ++e) {
    for (const auto& [region, candidates] : e->second) {
      for (const auto& [candidate, timing] : candidates) {
        other.record(e->first, region, candidate, timing);
      }
    }
  }
  EXPECT_EQ(to_json(other), to_json(cache));
}

TEST(TimingCache, AbsentFileIsEmptyWithoutANote) {
  const testing::ScratchFolder folder;
  const auto loaded = load_timing_cache(folder / "absent.json", "cpu 1");
  EXPECT_TRUE(loaded.cache.environments.empty());
  EXPECT_TRUE(loaded.notes.empty());
}

TEST(TimingCache, NotesTimingsOfOtherEnvironments) {
  const auto loaded = parse_timing_cache(to_json(two_environments()), "cpu 3");
  EXPECT_EQ(loaded.cache, two_environments());
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_EQ(loaded.notes[0],
            "has no timings for 'cpu 3', only for 'cpu 1', 'cpu 2'; they are kept and not used");
}

TEST(TimingCache, IgnoresDamageWithANote) {
  const std::string good = to_json(two_environments());
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("null"),
        good.substr(0, good.size() / 2), std::string(R"({"kind": "report", "schema": 1})"),
        std::string(R"({"kind": "kiln-timing-cache", "schema": 2, "environments": {}})"),
        std::string(R"({"kind": "kiln-timing-cache", "schema": 1, "environments": 3})"),
        R"({"kind": "kiln-timing-cache", "schema": )" + deep + "}"}) {
    const auto loaded = parse_timing_cache(text, "cpu 1");
    EXPECT_TRUE(loaded.cache.environments.empty()) << text.substr(0, 100);
    EXPECT_EQ(loaded.notes.size(), 1u) << text.substr(0, 100);
  }
}

TEST(TimingCache, KnowsWhatIsNotItsToOverwrite) {
  const testing::ScratchFolder folder;
  const auto foreign = [&](std::string_view text) {
    testing::write_bytes(folder / "t", std::as_bytes(std::span(text)));
    return load_timing_cache(folder / "t", "cpu 1").foreign;
  };
  EXPECT_FALSE(load_timing_cache(folder / "absent", "cpu 1").foreign);
  EXPECT_TRUE(load_timing_cache(folder.path(), "cpu 1").foreign);
  EXPECT_FALSE(foreign(""));
  EXPECT_FALSE(foreign(to_json(two_environments())));
  EXPECT_TRUE(foreign("my diary"));
  EXPECT_TRUE(foreign(R"({"kind": "report", "schema": 1})"));
  EXPECT_TRUE(foreign(R"({"kind": "kiln-timing-cache", "schema": 2})"));
}

TEST(TimingCache, NamesTheFileInNotes) {
  const testing::ScratchFolder folder;
  testing::write_bytes(folder / "t.json", std::as_bytes(std::span("{", 1)));
  const auto loaded = load_timing_cache(folder / "t.json", "cpu 1");
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_NE(loaded.notes[0].find("t.json' is damaged and was ignored"), std::string::npos);
}

TEST(TimingCache, LeavesDamagedEntriesOut) {
  for (const char* field : {"median_us", "spread_us", "verified", "error", "max_abs_error"}) {
    for (const nlohmann::json& value : {nlohmann::json(), nlohmann::json(-1), nlohmann::json({})}) {
      auto document = nlohmann::json::parse(to_json(two_environments()));
      document["environments"]["cpu 1"]["matmul f32[8x8]"]["loop/naive"][field] = value;
      const auto loaded = parse_timing_cache(document.dump(), "cpu 1");
      EXPECT_EQ(loaded.cache.find("cpu 1", "matmul f32[8x8]", "loop/naive"), nullptr) << field;
      EXPECT_NE(loaded.cache.find("cpu 1", "matmul f32[8x8]", "onednn/default"), nullptr);
      ASSERT_EQ(loaded.notes.size(), 1u);
      EXPECT_EQ(loaded.notes[0], "1 damaged entries were ignored");
    }
  }
}

TEST(TimingCache, DropsTimesThatAreNotFinite) {
  TimingCache cache = two_environments();
  cache.record("cpu 1", "r", "c", {std::nan(""), 0, true, 0, 0, ""});
  cache.record("cpu 1", "r", "d", {1, INFINITY, true, 0, 0, ""});
  EXPECT_EQ(parse_timing_cache(to_json(cache), "cpu 1").cache, two_environments());
}

}  // namespace
}  // namespace kiln
