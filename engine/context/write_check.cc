#include "engine/context/write_check.h"

#include <algorithm>

namespace kiln {
namespace {

void add(const plan::BufferRef& ref, std::string name, std::vector<WritableRange>& ranges) {
  if (ref.space != plan::BufferRef::Space::kArena || ref.bytes == 0) return;
  ranges.push_back({ref.offset, ref.offset + ref.bytes, std::move(name)});
}

// Bytes [begin, end) between two ranges; null where there is none.
struct Gap {
  uint64_t begin = 0, end = 0;
  const WritableRange* before = nullptr;
  const WritableRange* behind = nullptr;
};

Error stray(const Gap& gap, uint64_t first, uint64_t last) {
  const bool follows =
      gap.before != nullptr &&
      (gap.behind == nullptr || first - gap.before->end < gap.behind->begin - last);
  std::string where = "outside of its buffers";
  if (follows) {
    where = std::to_string(first - gap.before->end) + " bytes behind " + gap.before->name;
  } else if (gap.behind != nullptr) {
    where = std::to_string(gap.behind->begin - last) + " bytes before " + gap.behind->name;
  }
  return {ErrorCode::kVerification, "wrote " + where};
}

Result<> check_gap(const Gap& gap, const ReadMemory& read) {
  std::vector<std::byte> bytes(gap.end - gap.begin);
  KILN_RETURN_IF_ERROR(read(gap.begin, bytes));
  const auto written = [](std::byte byte) { return byte != kPoison; };
  const auto first = std::find_if(bytes.begin(), bytes.end(), written);
  if (first == bytes.end()) return Ok();
  const auto last = std::find_if(bytes.rbegin(), bytes.rend(), written);
  return stray(gap, gap.begin + static_cast<uint64_t>(first - bytes.begin()),
               gap.end - static_cast<uint64_t>(last - bytes.rbegin()));
}

}  // namespace

std::vector<WritableRange> arena_writes(const plan::ShapePoint& point) {
  std::vector<WritableRange> ranges;
  for (size_t i = 0; i < point.steps.size(); ++i) {
    const std::string step = " of step " + std::to_string(i);
    std::visit(
        [&](const auto& action) {
          if constexpr (requires { action.outputs; }) {
            for (size_t o = 0; o < action.outputs.size(); ++o) {
              add(action.outputs[o].buffer, "output " + std::to_string(o) + step, ranges);
            }
            add(action.workspace, "the workspace" + step, ranges);
          } else if constexpr (requires { action.to; }) {
            add(action.to, "the copy" + step, ranges);
          } else if constexpr (requires { action.iteration; }) {
            add(action.iteration, "the counter" + step, ranges);
          }
        },
        point.steps[i].action);
  }
  return ranges;
}

Result<> check_writes(std::vector<WritableRange> ranges, uint64_t size, const ReadMemory& read) {
  std::ranges::sort(ranges, {}, [](const WritableRange& r) { return r.begin; });
  Gap gap;
  for (const WritableRange& range : ranges) {
    if (range.begin > gap.begin) {
      gap.end = range.begin;
      gap.behind = &range;
      KILN_RETURN_IF_ERROR(check_gap(gap, read));
    }
    if (range.end <= gap.begin) continue;
    gap = {range.end, 0, &range, nullptr};
  }
  gap.end = size;
  gap.behind = nullptr;
  return gap.begin < size ? check_gap(gap, read) : Ok();
}

}  // namespace kiln
