#include "apps/engine-inspect/arena_buffers.h"

#include <gtest/gtest.h>

#include "tests/engine/plan_fixtures.h"

namespace kiln::inspect {
namespace {

using testing::arena;
using testing::input;
using testing::output;

plan::Operand operand(const plan::BufferRef& buffer) {
  return {buffer, {DType::kU8, {static_cast<int64_t>(buffer.bytes)}}};
}

plan::Step call(plan::BufferRef from, plan::BufferRef to, plan::BufferRef workspace = {}) {
  return {0, plan::HostOperation{0, {operand(from)}, {operand(to)}, workspace}};
}

TEST(ArenaBuffers, LiveFromWriteToLastRead) {
  plan::ShapePoint point;
  point.steps = {call(input(0, 64), arena(0, 64)),                   // a
                 call(arena(0, 64), arena(64, 64), arena(128, 32)),  // b, with workspace
                 call(arena(0, 64), output(0, 64)),                  // the last read of a
                 call(arena(64, 64), arena(0, 32)),                  // c takes a's place
                 call(arena(0, 32), output(0, 32))};
  const std::vector<ArenaBuffer> expected = {
      {0, 64, 0, 2, false}, {64, 64, 1, 3, false}, {128, 32, 1, 1, true}, {0, 32, 3, 4, false}};
  EXPECT_EQ(arena_buffers(point), expected);
  const Occupancy live = occupancy(expected, point.steps.size());
  EXPECT_EQ(live.live_bytes, (std::vector<uint64_t>{64, 160, 128, 96, 32}));
  EXPECT_EQ(live.peak_step, 1u);
}

TEST(ArenaBuffers, BytesTakenOverInPlaceCountOnce) {
  plan::ShapePoint point;
  point.steps = {call(input(0, 64), arena(0, 64)), call(arena(0, 64), arena(0, 64)),
                 call(arena(0, 64), output(0, 64))};
  const std::vector<ArenaBuffer> buffers = arena_buffers(point);
  EXPECT_EQ(buffers, (std::vector<ArenaBuffer>{{0, 64, 0, 1, false}, {0, 64, 1, 2, false}}));
  EXPECT_EQ(occupancy(buffers, 3).live_bytes, (std::vector<uint64_t>{64, 64, 64}));
}

TEST(ArenaBuffers, PiecesOfAConcatLiveUntilTheWholeIsRead) {
  plan::ShapePoint point;
  point.steps = {call(input(0, 32), arena(0, 32)), call(input(0, 32), arena(32, 32)),
                 call(arena(0, 64), output(0, 64))};
  EXPECT_EQ(arena_buffers(point),
            (std::vector<ArenaBuffer>{{0, 32, 0, 2, false}, {32, 32, 1, 2, false}}));
}

TEST(ArenaBuffers, WhatALoopReadsLivesUntilItsEnd) {
  plan::ShapePoint point;
  point.steps = {call(input(0, 64), arena(0, 64)),
                 {0, plan::Repeat{input(1, 8), {}, arena(128, 8), 2}},
                 call(arena(0, 64), arena(64, 64)),
                 call(arena(64, 64), output(0, 64)),
                 call(input(0, 64), output(0, 64))};
  EXPECT_EQ(arena_buffers(point),
            (std::vector<ArenaBuffer>{
                {0, 64, 0, 3, false}, {128, 8, 1, 1, false}, {64, 64, 2, 3, false}}));
}

}  // namespace
}  // namespace kiln::inspect
