// WriteCheck: whether steps wrote where they may. A context's memory is poisoned, a request runs,
// and what lies outside of the steps' buffers must still be poison.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/engine_file/plan.h"
#include "formats/result.h"

namespace kiln {

inline constexpr std::byte kPoison{0xCB};

// Bytes [begin, end) of a context's memory that a request may write.
struct WritableRange {
  uint64_t begin = 0, end = 0;
  std::string name;  // "output 0 of step 2"
};

// What a point's steps write in the arena; ranges may overlap.
std::vector<WritableRange> arena_writes(const plan::ShapePoint& point);

// Copies bytes of the context's memory from `offset` on.
using ReadMemory = std::function<Result<>(uint64_t offset, std::span<std::byte> to)>;

// kVerification: a byte of [0, size) outside of all ranges is not poison any more; says how far
// from which buffer.
Result<> check_writes(std::vector<WritableRange> ranges, uint64_t size, const ReadMemory& read);

}  // namespace kiln
