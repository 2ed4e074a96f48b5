// x w' for many rows of x. One warp copies tiles of x and w into a ring of stages in shared memory;
// two groups of four warps take every second tile of the product each. One multiplies while the
// other makes results of its sums and stores them, so that a block's tensor cores never wait for
// what follows the product. Blocks go on from tile to tile until all are done; those of a cluster
// share what they all read. Where tiles are few, the blocks of a cluster share the depth of one
// instead (kSplits): each gets what the others have summed of some of the tile's rows, and makes
// results of these.
//
// Constants, multiply() and finish() come before this text; see many_rows_kernel.cc.

constexpr int kThreads = 384;
constexpr int kTileRows = 64 * kTileBlocks;
constexpr int kStageDepth = 128 / kElementBytes;  // elements
constexpr int kStagesOfDepth = (kDepth + kStageDepth - 1) / kStageDepth;
constexpr int kBytesOfX = kTileRows * 128, kBytesOfW = kTileColumns * 128;
constexpr int kStageBytes = kBytesOfX + kBytesOfW;
constexpr int kCluster = kClusterRows * kClusterColumns * kSplits;
constexpr int kSharers = kCluster / kSplits;  // of stages
constexpr int kRowTiles = (kRows + kTileRows * kClusterRows - 1) / (kTileRows * kClusterRows);
constexpr int kColumnTiles =
    (kColumns + kTileColumns * kClusterColumns - 1) / (kTileColumns * kClusterColumns);
constexpr int kTiles = kRowTiles * kColumnTiles;  // of a cluster
constexpr int kClusters = kBlocks / kCluster;
// A warp stores 16 rows of 64 columns at a time.
constexpr int kPartBytes = 2048;
constexpr int kPartsOfRow = kTileColumns / 64, kParts = kTileBlocks * kPartsOfRow;
static_assert(kParts % kBuffers == 0, "parts take the same buffers in every tile");
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
          (at / rows * kClusterColumns + static_cast<int>(rank) / kClusterRows) * kTileColumns};
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
      load_box(to, w_map, (share.first + stage) * kStageDepth, column, full);
    } else {
      constexpr int kShare = kTileColumns / kClusterRows;
      load_box_for(kAll, to + rank * kShare * 128, w_map, stage * kStageDepth,
                   column + rank * kShare, full);
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

// Where the warps' group has multiplied `before` stages of the block, those of the other group
// counted.
KILN_DEVICE void multiply_tile(const Layout& layout, int before, int stages, int lane, Sums& sums) {
  int slot = before % kRing, latest = 0;
  unsigned parity = before / kRing & 1;
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_phase(layout.full + slot * 8, parity);
    const unsigned long long x = matrix_at(layout.stages + slot * kStageBytes);
    const unsigned long long w = matrix_at(layout.stages + slot * kStageBytes + kBytesOfX);
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int block = 0; block < kTileBlocks; ++block) {
        multiply(sums[block], x + block * 512 + step * 2, w + step * 2, stage | step);
      }
    }
    close_products();
    if (stage > 0) {
      wait_for_products_but<1>();
      release(layout.empty + latest * 8, lane);
    }
    latest = slot;
    if (++slot == kRing) {
      slot = 0;
      parity ^= 1;
    }
  }
}

// The two elements of the product at a place, as they are to be stored.
KILN_DEVICE unsigned finish_at(const Operands& operands, float first, float second,
                               unsigned residual, int row, int column) {
  // What is outside is not stored.
  if constexpr (kRows % kTileRows != 0) row = min(row, kRows - 1);
  if constexpr (kColumns % kTileColumns != 0) column = min(column, kColumns - 2);
  return finish(operands, {first, second}, residual, row, column);
}

// Of one warp; no warp waits for another.
struct Finisher {
  const Operands& operands;
  const TensorMap& residual_map;
  const TensorMap& y_map;
  unsigned parts, barriers;  // this warp's
  int lane;
  int taken = 0;  // parts of tiles before

  // Of 16 rows and 64 columns.
  KILN_DEVICE void load_residual(int buffer, int row, int column) const {
    arrive_expecting(barriers + buffer * 8, kPartBytes);
    load_box(parts + buffer * kPartBytes, residual_map, column, row, barriers + buffer * 8);
  }
  KILN_DEVICE static int row_of(int part, const Place& place) {
    return place.row + part / kPartsOfRow * 64;
  }
  KILN_DEVICE static int column_of(int part, const Place& place) {
    return place.column + part % kPartsOfRow * 64;
  }
  // The residual of the first parts is on its way while the tile is multiplied.
  KILN_DEVICE void begin(const Place& place) const {
    if (!kResidual || lane != 0) return;
    wait_for_reads_but<0>();
#pragma unroll
    for (int part = 0; part < kBuffers; ++part) {
      load_residual(part, row_of(part, place), column_of(part, place));
    }
  }
  KILN_DEVICE void run(const Sums& sums, const Place& place) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int buffer = part % kBuffers;
      finish_part(&sums[part / kPartsOfRow][part % kPartsOfRow * 32], buffer,
                  (taken + part) / kBuffers & 1, row_of(part, place), column_of(part, place));
      if (!kResidual || lane != 0 || part + kBuffers >= kParts) continue;
      wait_for_reads_but<0>();
      load_residual(buffer, row_of(part + kBuffers, place), column_of(part + kBuffers, place));
    }
    taken += kParts;
  }
  KILN_DEVICE void finish_part(const float* sums, int number, unsigned parity, int row,
                               int column) const {
    const unsigned buffer = parts + number * kPartBytes;
    if (kResidual) {
      wait_for_phase(barriers + number * 8, parity);
    } else {
      if (lane == 0) wait_for_reads_but<kBuffers - 1>();
      __syncwarp();
    }
    make(sums, buffer, row, column);
    show_to_copies();
    __syncwarp();
    if (lane == 0) store_box(y_map, buffer, column, row);
  }
  // Results of 16 rows and 64 columns.
  KILN_DEVICE void make(const float* sums, unsigned buffer, int row, int column) const {
#pragma unroll
    for (int two = 0; two < 4; ++two) {  // groups of 8 columns
      const unsigned at = buffer + lane % 16 * 128 + (((two * 2 + lane / 16) ^ (lane & 7)) << 4);
      unsigned residual[4] = {}, made[4];
      if (kResidual) take_matrices(residual, at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // rows 0 and 8 of the first group, then of the second
        const float* two_sums = sums + (two * 2 + i / 2) * 4 + i % 2 * 2;
        made[i] =
            finish_at(operands, two_sums[0], two_sums[1], residual[i], row + lane / 4 + i % 2 * 8,
                      column + (two * 2 + i / 2) * 8 + lane % 4 * 2);
      }
      put_matrices(at, made);
    }
  }
};

KILN_DEVICE void meet() {
  if constexpr (kCluster > 1) {
    arrive_at_cluster();
    wait_for_cluster();
  } else {
    __syncthreads();
  }
}

// Nothing that uses the sums is moved above the wait for them.
KILN_DEVICE void wait_for_sums(Sums& sums) {
  wait_for_products_but<0>();
#pragma unroll
  for (int block = 0; block < kTileBlocks; ++block) {
#pragma unroll
    for (int s = 0; s < kTileColumns / 2; ++s) asm volatile("" : "+f"(sums[block][s])::"memory");
  }
}

// By turns with the other group of warps.
KILN_DEVICE void run_tiles(const Layout& layout, int group, int warp, unsigned rank,
                           Finisher& finisher) {
  const int lane = finisher.lane, cluster = blockIdx.x / kCluster;
  Sums sums;
  if (group == 1) give_turn<256>(1);  // group 0 goes first
#pragma unroll 1
  for (int i = group; cluster + i * kClusters < kTiles; i += 2) {
    Place place = place_of(cluster + i * kClusters, rank);
    place.row += warp % 4 * 16;
    finisher.begin(place);
    wait_for_turn<256>(1 + group);
    multiply_tile(layout, i * kStagesOfDepth, kStagesOfDepth, lane, sums);
    give_turn<256>(2 - group);
    wait_for_sums(sums);
    release(layout.empty + (i * kStagesOfDepth + kStagesOfDepth - 1) % kRing * 8, lane);
    finisher.run(sums, place);
  }
}

// A block's share of the depth of one tile. `warp` of 4 has sums of 16 rows, which block
// warp / kGroups of the cluster finishes; there a warp for every 64 columns adds them up in the
// order of the blocks.
KILN_DEVICE void run_share(const Layout& layout, int warp, unsigned rank, Finisher& finisher) {
  const int lane = finisher.lane;
  const Place tile = place_of(blockIdx.x / kCluster, 0);
  const bool finishes = warp < kGroups * kPartsOfRow;
  const int own = warp / kPartsOfRow, part = warp % kPartsOfRow;
  const int row = tile.row + (static_cast<int>(rank) * kGroups + own) * 16;
  const int column = tile.column + part * 64;
  if (kResidual && finishes && lane == 0) finisher.load_residual(0, row, column);
  Sums sums = {};
  multiply_tile(layout, 0, stages_of(rank).count, lane, sums);
  wait_for_sums(sums);
  constexpr int kPieces = kLaneSums / 4;  // of 16 bytes
  const unsigned to = in_cluster(layout.exchange, warp / kGroups) +
                      ((warp % kGroups * kSplits + rank) * kPieces * 32 + lane) * 16;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    store_in_cluster(to + piece * 512, &sums[0][piece * 4]);
  }
  meet();
  if (!finishes) return;
  float total[32] = {};
#pragma unroll
  for (int block = 0; block < kSplits; ++block) {
#pragma unroll
    for (int piece = 0; piece < 8; ++piece) {
      float four[4];
      load_four(four,
                layout.exchange +
                    (((own * kSplits + block) * kPieces + part * 8 + piece) * 32 + lane) * 16);
#pragma unroll
      for (int i = 0; i < 4; ++i) total[piece * 4 + i] += four[i];
    }
  }
  finisher.finish_part(total, 0, 0, row, column);
}

KILN_DEVICE void run_consumer(const Layout& layout, int group, int warp, unsigned rank,
                              const Operands& operands, const TensorMap& residual_map,
                              const TensorMap& y_map) {
  const int lane = threadIdx.x % 32;
  Finisher finisher{operands,
                    residual_map,
                    y_map,
                    layout.parts + warp * kBuffers * kPartBytes,
                    layout.residual + warp * kBuffers * 8,
                    lane};
  wait_for_earlier_kernels();
  if constexpr (kSplits == 1)
    run_tiles(layout, group, warp, rank, finisher);
  else if (group == 0)
    run_share(layout, warp, rank, finisher);
  else
    meet();
  if (lane == 0) wait_for_stores();
}

KILN_DEVICE void many_rows(const Operands& operands, const TensorMap& x_map, const TensorMap& w_map,
                           const TensorMap& residual_map, const TensorMap& y_map) {
  const Layout layout;
  // Through a shuffle, so that the compiler knows that a warp's lanes agree.
  const int warp = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x / 32), 0);
  const int group = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x / 128), 0);
  const unsigned rank = kCluster > 1 ? rank_in_cluster() : 0;
  let_next_kernel_start();
  if (threadIdx.x == 0) {
    prefetch_map(x_map);
    prefetch_map(w_map);
    prefetch_map(y_map);
    if (kResidual) prefetch_map(residual_map);
    for (int i = 0; i < kRing; ++i) {
      make_barrier(layout.full + i * 8, 1);
      make_barrier(layout.empty + i * 8, 4 * kSharers);
    }
    for (int i = 0; i < 8 * kBuffers; ++i) make_barrier(layout.residual + i * 8, 1);
    publish_barriers();
  }
  meet();
  if (group == 0) {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x == 0) {
      Producer{layout, x_map, w_map, kSplits == 1 ? rank : 0, stages_of(rank)}.run(blockIdx.x /
                                                                                   kCluster);
    }
    __syncwarp();
    if constexpr (kSplits > 1) meet();
  } else {
    take_registers<kConsumerRegisters>();
    run_consumer(layout, group - 1, warp - 4, rank, operands, residual_map, y_map);
  }
  __syncwarp();
  // Copies and arrivals may still be on their way to a block.
  if constexpr (kSplits == 1 && kCluster > 1) meet();
}
