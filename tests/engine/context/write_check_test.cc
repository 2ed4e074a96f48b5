#include "engine/context/write_check.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr uint64_t kSize = 256;

// Memory of poison with some bytes written.
std::string found(const std::vector<uint64_t>& written, std::vector<WritableRange> ranges) {
  std::vector<std::byte> memory(kSize, kPoison);
  for (uint64_t at : written) memory[at] = std::byte{1};
  const auto checked =
      check_writes(std::move(ranges), kSize, [&](uint64_t offset, std::span<std::byte> to) {
        std::copy_n(memory.begin() + static_cast<int64_t>(offset), to.size(), to.begin());
        return Result<>(Ok());
      });
  return checked.ok() ? "" : checked.error().message;
}

std::vector<WritableRange> two() { return {{160, 200, "b"}, {32, 96, "a"}}; }

TEST(WriteCheck, AllowsTheRangesAlone) {
  EXPECT_EQ(found({}, two()), "");
  EXPECT_EQ(found({32, 95, 160, 199}, two()), "");
  EXPECT_EQ(found({31}, two()), "wrote 0 bytes before a");
  EXPECT_EQ(found({96, 97}, two()), "wrote 0 bytes behind a");
  EXPECT_EQ(found({150}, two()), "wrote 9 bytes before b");
  EXPECT_EQ(found({255}, two()), "wrote 55 bytes behind b");
  EXPECT_EQ(found({3}, {}), "wrote outside of its buffers");
}

TEST(WriteCheck, TakesRangesThatOverlap) {
  const std::vector<WritableRange> nested = {{0, 200, "a"}, {10, 20, "b"}, {190, 256, "c"}};
  EXPECT_EQ(found({0, 100, 255}, nested), "");
  EXPECT_EQ(found({230}, {{0, 200, "a"}, {10, 20, "b"}}), "wrote 30 bytes behind a");
}

TEST(WriteCheck, KnowsWhatEveryKindOfStepWrites) {
  using Space = plan::BufferRef::Space;
  plan::ShapePoint point;
  plan::KernelLaunch launch;
  launch.inputs = {{{Space::kArena, 0, 0, 8}, {DType::kF32, {2}}}};
  launch.outputs = {{{Space::kOutput, 0, 0, 8}, {DType::kF32, {2}}},
                    {{Space::kArena, 0, 64, 8}, {DType::kF32, {2}}}};
  launch.workspace = {Space::kArena, 0, 128, 16};
  point.steps.push_back({0, launch});
  point.steps.push_back({0, plan::Copy{{Space::kInput, 0, 0, 4}, {Space::kArena, 0, 192, 4}}});
  point.steps.push_back({0, plan::Repeat{{}, {}, {Space::kArena, 0, 200, 8}, 0}});
  const auto ranges = arena_writes(point);
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges[0].name, "output 1 of step 0");
  EXPECT_EQ(ranges[0].begin, 64u);
  EXPECT_EQ(ranges[0].end, 72u);
  EXPECT_EQ(ranges[1].name, "the workspace of step 0");
  EXPECT_EQ(ranges[1].end, 144u);
  EXPECT_EQ(ranges[2].name, "the copy of step 1");
  EXPECT_EQ(ranges[3].name, "the counter of step 2");
}

}  // namespace
}  // namespace kiln
