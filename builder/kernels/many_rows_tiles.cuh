// Tiles of many_rows.cuh: what a block multiplies and where it lies in shared memory; the warp that
// copies it there, and the products.
//
// Constants and multiply() come before this text; see many_rows_kernel.cc.

constexpr int kThreads = 384;
constexpr int kTileRows = 64 * kTileBlocks;
// Results are made of elements of kHalves products, which w has one behind the other: of a tile of
// these, and of a tile of results, this many columns.
constexpr int kResultColumns = kTileColumns / kHalves;
constexpr int kStageDepth = 128 / kElementBytes;  // elements
constexpr int kStagesOfDepth = (kDepth + kStageDepth - 1) / kStageDepth;
constexpr int kBytesOfX = kTileRows * 128, kBytesOfW = kTileColumns * 128;
constexpr int kStageBytes = kBytesOfX + kBytesOfW;
constexpr int kCluster = kClusterRows * kClusterColumns * kSplits;
constexpr int kSharers = kCluster / kSplits;  // of stages
constexpr int kRowTiles = (kRows + kTileRows * kClusterRows - 1) / (kTileRows * kClusterRows);
constexpr int kColumnTiles =
    (kColumns + kResultColumns * kClusterColumns - 1) / (kResultColumns * kClusterColumns);
constexpr int kTiles = kRowTiles * kColumnTiles;  // of a cluster
constexpr int kClusters = kBlocks / kCluster;
// A warp stores 16 rows of 128 bytes of results at a time.
constexpr int kPartBytes = 2048, kPartColumns = 128 / kResultBytes;
constexpr int kPartsOfRow = kResultColumns / kPartColumns, kParts = kTileBlocks * kPartsOfRow;
static_assert(kParts % kBuffers == 0, "parts take the same buffers in every tile");
static_assert(kResultColumns % kPartColumns == 0, "whole parts");
static_assert(kHalves == 1 || kClusterRows <= 2, "a block copies no less than a half");
static_assert(kSplits == 1 || (kTileBlocks == 1 && kCluster == kSplits), "splits share one tile");
// Of a tile that blocks share: groups of 16 rows that each finishes, and what it gets, by group,
// block and lane.
constexpr int kGroups = 4 / kSplits;
constexpr int kLaneSums = kTileColumns / 2;
constexpr int kExchangeBytes = kSplits > 1 ? 4 * kLaneSums * 32 * 4 : 0;

struct Layout {
  unsigned stages, parts, exchange, full, empty, residual;  // addresses in shared memory
  KILN_DEVICE Layout() {
    extern __shared__ unsigned char kiln_shared_of_launch[];
    stages = (shared_address(kiln_shared_of_launch) + 1023) & ~1023u;
    parts = stages + kRing * kStageBytes;
    exchange = parts + 8 * kBuffers * kPartBytes;
    full = exchange + kExchangeBytes;
    empty = full + kRing * 8;
    residual = empty + kRing * 8;
  }
};

struct Place {
  int row, column;
};
// Of this block's part of tile `t` of its cluster: some rows of tiles at a time, column by column,
// so that what is multiplied at the same time is close to a square.
KILN_DEVICE Place place_of(int t, unsigned rank) {
  const int in_group = kGroup * kColumnTiles, group = t / in_group, first = group * kGroup;
  const int rows = min(kRowTiles - first, kGroup), at = t - group * in_group;
  return {((first + at % rows) * kClusterRows + static_cast<int>(rank) % kClusterRows) * kTileRows,
          (at / rows * kClusterColumns + static_cast<int>(rank) / kClusterRows) * kResultColumns};
}

// The stages of a tile's depth that a block multiplies.
struct Stages {
  int first, count;
};
KILN_DEVICE Stages stages_of(unsigned rank) {
  if constexpr (kSplits == 1) return {0, kStagesOfDepth};
  const int first = static_cast<int>(rank) * kStagesOfDepth / kSplits;
  return {first, (static_cast<int>(rank) + 1) * kStagesOfDepth / kSplits - first};
}

// One lane's work.
struct Producer {
  const Layout& layout;
  const TensorMap& x_map;
  const TensorMap& w_map;
  unsigned rank;
  Stages share;
  static constexpr unsigned kAll = (1 << kCluster) - 1;

  KILN_DEVICE void load_x(int slot, int stage, int row) const {
    const unsigned to = layout.stages + slot * kStageBytes, full = layout.full + slot * 8;
    if constexpr (kClusterColumns == 1) {
      load_box(to, x_map, (share.first + stage) * kStageDepth, row, full);
    } else {  // a part of it, for all
      constexpr int kShare = kTileRows / kClusterColumns;
      load_box_for(kAll, to + rank * kShare * 128, x_map, stage * kStageDepth, row + rank * kShare,
                   full);
    }
  }
  KILN_DEVICE void load_w(int slot, int stage, int column) const {
    const unsigned to = layout.stages + slot * kStageBytes + kBytesOfX;
    const unsigned full = layout.full + slot * 8;
    if constexpr (kClusterRows == 1) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        load_box(to + half * kResultColumns * 128, w_map, (share.first + stage) * kStageDepth,
                 half * kColumns + column, full);
      }
    } else {
      constexpr int kShare = kTileColumns / kClusterRows, kApart = kHalves > 1 ? kColumns : kShare;
      load_box_for(kAll, to + rank * kShare * 128, w_map, stage * kStageDepth,
                   column + rank * kApart, full);
    }
  }
  KILN_DEVICE void run(int cluster) const {
    if (!kConstantWeights) wait_for_earlier_kernels();
    // Nothing on the GPU writes what the engine holds, so that w is on its way before x is made.
    const int ahead = min(kRing, share.count);
    Place place = place_of(cluster, rank);
    for (int i = 0; i < ahead; ++i) {
      arrive_expecting(layout.full + i * 8, kStageBytes);
      load_w(i, i, place.column);
    }
    if (kConstantWeights) wait_for_earlier_kernels();
    for (int i = 0; i < ahead; ++i) load_x(i, i, place.row);
    int slot = ahead % kRing;
    unsigned parity = ahead == kRing ? 0 : 1;
    for (int t = cluster; t < kTiles; t += kClusters) {
      place = place_of(t, rank);
#pragma unroll 1
      for (int stage = t == cluster ? ahead : 0; stage < share.count; ++stage) {
        wait_for_phase(layout.empty + slot * 8, parity);
        arrive_expecting(layout.full + slot * 8, kStageBytes);
        load_x(slot, stage, place.row);
        load_w(slot, stage, place.column);
        if (++slot == kRing) {
          slot = 0;
          parity ^= 1;
        }
      }
    }
  }
};

using Sums = float[kTileBlocks][kTileColumns / 2];

KILN_DEVICE void release(unsigned empty, int lane) {
  if (lane >= kSharers) return;
  if constexpr (kSharers > 1)
    arrive_in_cluster(empty, lane);
  else
    arrive(empty);
}

// A position among the stages of the ring.
struct Slot {
  int number;
  unsigned parity;
  KILN_DEVICE explicit Slot(int stages) : number(stages % kRing), parity(stages / kRing & 1) {}
  KILN_DEVICE void advance() {
    if (++number == kRing) {
      number = 0;
      parity ^= 1;
    }
  }
};

// Begins the products of a stage; without `add` they are the first.
KILN_DEVICE void multiply_stage(const Layout& layout, Slot slot, int add, Sums& sums) {
  wait_for_phase(layout.full + slot.number * 8, slot.parity);
  const unsigned long long x = matrix_at(layout.stages + slot.number * kStageBytes);
  const unsigned long long w = matrix_at(layout.stages + slot.number * kStageBytes + kBytesOfX);
  begin_products();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int block = 0; block < kTileBlocks; ++block) {
      multiply(sums[block], x + block * 512 + step * 2, w + step * 2, add | step);
    }
  }
  close_products();
}

// Nothing that uses the sums is moved above the wait for them.
KILN_DEVICE void hold(Sums& sums) {
#pragma unroll
  for (int block = 0; block < kTileBlocks; ++block) {
#pragma unroll
    for (int s = 0; s < kTileColumns / 2; ++s) asm volatile("" : "+f"(sums[block][s])::"memory");
  }
}

KILN_DEVICE void add_to(Sums& sums, const Sums& some) {
#pragma unroll
  for (int block = 0; block < kTileBlocks; ++block) {
#pragma unroll
    for (int s = 0; s < kTileColumns / 2; ++s) sums[block][s] += some[block][s];
  }
}

// Tensor cores keep 13 bits or so behind the point of what they sum up of 8-bit elements. Here they
// begin anew with each stage, and its sums are added to those before, of every second stage while
// the next is multiplied (DeepSeek-V3 technical report, section 3.3.2).
KILN_DEVICE void multiply_tile_in_steps(const Layout& layout, int before, int stages, int lane,
                                        Sums& sums) {
  Slot slot(before);
  Sums even, odd;
#pragma unroll
  for (int block = 0; block < kTileBlocks; ++block) {
#pragma unroll
    for (int s = 0; s < kTileColumns / 2; ++s) sums[block][s] = 0;
  }
#pragma unroll 1
  for (int stage = 0; stage + 1 < stages; stage += 2) {
    const int first = slot.number;
    multiply_stage(layout, slot, 0, even);
    slot.advance();
    multiply_stage(layout, slot, 0, odd);
    wait_for_products_but<1>();
    hold(even);
    release(layout.empty + first * 8, lane);
    add_to(sums, even);
    wait_for_products_but<0>();
    hold(odd);
    if (stage + 2 < stages) release(layout.empty + slot.number * 8, lane);
    add_to(sums, odd);
    slot.advance();
  }
  if (stages % 2 == 0) return;
  multiply_stage(layout, slot, 0, even);
  wait_for_products_but<0>();
  hold(even);
  add_to(sums, even);
}

// Where the warps' group has multiplied `before` stages of the block, those of the other group
// counted. The last stage is left to be waited for and released.
KILN_DEVICE void multiply_tile(const Layout& layout, int before, int stages, int lane, Sums& sums) {
  if constexpr (kInSteps) return multiply_tile_in_steps(layout, before, stages, lane, sums);
  Slot slot(before);
  int latest = 0;
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    multiply_stage(layout, slot, stage, sums);
    if (stage > 0) {
      wait_for_products_but<1>();
      release(layout.empty + latest * 8, lane);
    }
    latest = slot.number;
    slot.advance();
  }
}
