#include "apps/engine-inspect/arena_buffers.h"

#include <algorithm>
#include <utility>

namespace kiln::inspect {
namespace {

using plan::BufferRef;

struct Access {
  std::vector<BufferRef> reads, writes;
  BufferRef workspace;
};

void add_call(const auto& call, Access& access) {
  for (const plan::Operand& input : call.inputs) access.reads.push_back(input.buffer);
  for (const plan::Operand& output : call.outputs) access.writes.push_back(output.buffer);
  access.workspace = call.workspace;
}

struct Collect {
  Access& access;

  void operator()(const plan::HostOperation& step) { add_call(step, access); }
  void operator()(const plan::PluginCall& step) { add_call(step, access); }
  void operator()(const plan::KernelLaunch& step) { add_call(step, access); }
  void operator()(const plan::Matmul& step) { add_call(step, access); }
  void operator()(const plan::CudnnGraph& step) { add_call(step, access); }
  void operator()(const plan::Copy& step) {
    access.reads = {step.from};
    access.writes = {step.to};
  }
  void operator()(const plan::Branch& step) { access.reads = {step.condition}; }
  void operator()(const plan::Repeat& step) {
    access.reads = {step.trip_count, step.condition};
    access.writes = {step.iteration};
  }
};

bool in_arena(const BufferRef& ref) {
  return ref.space == BufferRef::Space::kArena && ref.bytes > 0;
}

struct Loop {
  size_t begin, end;  // steps [begin, end) of the outermost repeat around a step
};

// For each step the outermost repeat that it belongs to, or an empty one.
std::vector<Loop> outermost_loops(const plan::ShapePoint& point) {
  std::vector<Loop> loops;
  size_t end = 0, begin = 0;
  for (size_t i = 0; i < point.steps.size(); ++i) {
    const auto* repeat = std::get_if<plan::Repeat>(&point.steps[i].action);
    if (i >= end && repeat != nullptr) {
      begin = i;
      end = i + 1 + repeat->body_steps;
    }
    loops.push_back(i < end ? Loop{begin, end} : Loop{i, i});
  }
  return loops;
}

class Tracker {
 public:
  void read(const BufferRef& ref, size_t step, const Loop& loop) {
    if (!in_arena(ref)) return;
    for (size_t index : live_) {
      ArenaBuffer& buffer = buffers_[index];
      if (!overlaps(buffer, ref)) continue;
      const bool outlives_round = loop.end > loop.begin && buffer.first_step < loop.begin;
      buffer.last_step = std::max(buffer.last_step, outlives_round ? loop.end - 1 : step);
    }
  }

  // What was there before is dead from now on.
  void write(const BufferRef& ref, size_t step, bool workspace) {
    if (!in_arena(ref)) return;
    std::erase_if(live_, [&](size_t index) { return overlaps(buffers_[index], ref); });
    live_.push_back(buffers_.size());
    buffers_.push_back({ref.offset, ref.bytes, step, step, workspace});
  }

  std::vector<ArenaBuffer> take() { return std::move(buffers_); }

 private:
  static bool overlaps(const ArenaBuffer& buffer, const BufferRef& ref) {
    return buffer.offset < ref.offset + ref.bytes && ref.offset < buffer.offset + buffer.bytes;
  }

  std::vector<ArenaBuffer> buffers_;
  std::vector<size_t> live_;
};

}  // namespace

std::vector<ArenaBuffer> arena_buffers(const plan::ShapePoint& point) {
  const std::vector<Loop> loops = outermost_loops(point);
  Tracker tracker;
  for (size_t i = 0; i < point.steps.size(); ++i) {
    Access access;
    std::visit(Collect{access}, point.steps[i].action);
    for (const BufferRef& ref : access.reads) tracker.read(ref, i, loops[i]);
    for (const BufferRef& ref : access.writes) tracker.write(ref, i, false);
    tracker.write(access.workspace, i, true);
  }
  return tracker.take();
}

Occupancy occupancy(const std::vector<ArenaBuffer>& buffers, size_t steps) {
  std::vector<std::vector<std::pair<uint64_t, uint64_t>>> ranges(steps);  // begin, end
  for (const ArenaBuffer& buffer : buffers) {
    for (size_t i = buffer.first_step; i <= buffer.last_step && i < steps; ++i) {
      ranges[i].emplace_back(buffer.offset, buffer.offset + buffer.bytes);
    }
  }
  Occupancy result;
  for (auto& live : ranges) {
    std::sort(live.begin(), live.end());
    uint64_t bytes = 0, covered = 0;
    for (const auto& [begin, end] : live) {
      const uint64_t from = std::max(begin, covered);
      if (end > from) bytes += end - from;
      covered = std::max(covered, end);
    }
    result.live_bytes.push_back(bytes);
  }
  const auto peak = std::max_element(result.live_bytes.begin(), result.live_bytes.end());
  if (peak != result.live_bytes.end()) {
    result.peak_step = static_cast<size_t>(peak - result.live_bytes.begin());
  }
  return result;
}

}  // namespace kiln::inspect
