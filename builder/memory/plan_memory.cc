#include "builder/memory/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace kiln {
namespace {

uint64_t aligned(uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// Buffers joined by in_place_of, which share one offset.
struct Block {
  uint64_t bytes = 0;
  int64_t first = 0, last = 0;

  bool overlaps(const Block& other) const { return first <= other.last && other.first <= last; }
};

struct Blocks {
  std::vector<Block> blocks;
  std::vector<size_t> block_of;  // by lifetime
};

Blocks join(std::span<const Lifetime> lifetimes) {
  Blocks result;
  for (const Lifetime& life : lifetimes) {
    if (life.in_place_of) {
      const size_t block = result.block_of[*life.in_place_of];
      result.block_of.push_back(block);
      Block& joined = result.blocks[block];
      joined.bytes = std::max(joined.bytes, aligned(life.bytes));
      joined.first = std::min(joined.first, life.first);
      joined.last = std::max(joined.last, life.last);
    } else {
      result.block_of.push_back(result.blocks.size());
      result.blocks.push_back({aligned(life.bytes), life.first, life.last});
    }
  }
  return result;
}

// The most bytes alive at any one step; at the step where a buffer takes over another's bytes they
// count once.
uint64_t most_alive(std::span<const Lifetime> lifetimes) {
  std::map<int64_t, int64_t> change;
  const auto add = [&](int64_t first, int64_t last, uint64_t bytes, int sign) {
    change[first] += sign * static_cast<int64_t>(bytes);
    change[last + 1] -= sign * static_cast<int64_t>(bytes);
  };
  for (const Lifetime& life : lifetimes) {
    const uint64_t bytes = aligned(life.bytes);
    add(life.first, life.last, bytes, 1);
    if (!life.in_place_of) continue;
    add(life.first, life.first, std::min(bytes, aligned(lifetimes[*life.in_place_of].bytes)), -1);
  }
  int64_t alive = 0, most = 0;
  for (const auto& [step, delta] : change) most = std::max(most, alive += delta);
  return static_cast<uint64_t>(most);
}

struct Layout {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
};

// Puts each block, in the given order, into the tightest gap among those alive with it.
Layout place(const std::vector<Block>& blocks, const std::vector<size_t>& order) {
  Layout layout{std::vector<uint64_t>(blocks.size(), 0), 0};
  std::vector<size_t> placed;  // sorted by offset
  for (size_t id : order) {
    const Block& block = blocks[id];
    if (block.bytes == 0) continue;
    uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (size_t other : placed) {
      if (!block.overlaps(blocks[other])) continue;
      const uint64_t offset = layout.offsets[other];
      if (offset >= end && offset - end >= block.bytes && offset - end < best_gap) {
        best = end;
        best_gap = offset - end;
      }
      end = std::max(end, offset + blocks[other].bytes);
    }
    layout.offsets[id] = best == UINT64_MAX ? end : best;
    layout.bytes = std::max(layout.bytes, layout.offsets[id] + block.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), id, [&](size_t a, size_t b) {
      return layout.offsets[a] < layout.offsets[b];
    });
    placed.insert(at, id);
  }
  return layout;
}

template <class Key>
std::vector<size_t> sorted_by(const std::vector<Block>& blocks, const Key& key) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return key(blocks[a]) > key(blocks[b]); });
  return order;
}

// Moves single blocks in the order while that helps; every other time one that makes the arena as
// large as it is, to an earlier place. Bounded by work, so that huge plans stay quick.
void improve(const std::vector<Block>& blocks, std::vector<size_t> order, uint64_t lower_bound,
             Layout& best) {
  constexpr size_t kWork = 200'000'000, kMostTries = 20'000;  // work: pairs of blocks
  if (blocks.empty()) return;
  const size_t tries = std::min(kMostTries, kWork / (blocks.size() * blocks.size()));
  std::mt19937 random(1);
  for (size_t i = 0; i < tries && best.bytes > lower_bound; ++i) {
    auto candidate = order;
    size_t from = random() % order.size(), to = random() % order.size();
    if (i % 2 == 0) {
      from = static_cast<size_t>(std::find_if(order.begin(), order.end(),
                                              [&](size_t id) {
                                                return best.offsets[id] + blocks[id].bytes ==
                                                       best.bytes;
                                              }) -
                                 order.begin());
      to = random() % (from + 1);
    }
    const size_t id = candidate[from];
    candidate.erase(candidate.begin() + static_cast<int64_t>(from));
    candidate.insert(candidate.begin() + static_cast<int64_t>(to), id);
    Layout layout = place(blocks, candidate);
    if (layout.bytes > best.bytes) continue;
    order = std::move(candidate);
    best = std::move(layout);
  }
}

}  // namespace

Placement plan_memory(std::span<const Lifetime> lifetimes) {
  const Blocks joined = join(lifetimes);
  const auto& blocks = joined.blocks;
  const auto length = [](const Block& b) { return static_cast<uint64_t>(b.last - b.first + 1); };
  const std::vector<std::vector<size_t>> orders = {
      sorted_by(blocks, [](const Block& b) { return b.bytes; }),
      sorted_by(blocks, [&](const Block& b) { return b.bytes * length(b); }),
      sorted_by(blocks, length),
      sorted_by(blocks, [](const Block& b) { return -b.first; }),
  };
  Placement result;
  result.lower_bound_bytes = most_alive(lifetimes);
  Layout best{{}, UINT64_MAX};
  const std::vector<size_t>* best_order = nullptr;
  for (const auto& order : orders) {
    Layout layout = place(blocks, order);
    if (layout.bytes >= best.bytes) continue;
    best = std::move(layout);
    best_order = &order;
  }
  if (best_order) improve(blocks, *best_order, result.lower_bound_bytes, best);
  result.arena_bytes = best.bytes;
  for (size_t block : joined.block_of) result.offsets.push_back(best.offsets[block]);
  return result;
}

}  // namespace kiln
