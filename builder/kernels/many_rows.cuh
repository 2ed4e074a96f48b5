// x w' for many rows of x. One warp copies tiles of x and w into a ring of stages in shared memory;
// two groups of four warps take every second tile of the product each. One multiplies while the
// other makes results of its sums and stores them, so that a block's tensor cores never wait for
// what follows the product. Blocks go on from tile to tile until all are done; those of a cluster
// share what they both read.
//
// Constants, multiply() and finish() come before this text; see many_rows_kernel.cc.

constexpr int kThreads = 384;
constexpr int kTileRows = 64 * kTileBlocks;
constexpr int kStageDepth = 128 / kElementBytes;  // elements
constexpr int kStagesOfDepth = (kDepth + kStageDepth - 1) / kStageDepth;
constexpr int kBytesOfX = kTileRows * 128, kBytesOfW = kTileColumns * 128;
constexpr int kStageBytes = kBytesOfX + kBytesOfW;
constexpr int kCluster = kClusterRows * kClusterColumns;
constexpr int kRowTiles = (kRows + kTileRows * kClusterRows - 1) / (kTileRows * kClusterRows);
constexpr int kColumnTiles =
    (kColumns + kTileColumns * kClusterColumns - 1) / (kTileColumns * kClusterColumns);
constexpr int kTiles = kRowTiles * kColumnTiles;  // of a cluster
constexpr int kClusters = kBlocks / kCluster;
// A warp stores 16 rows of 64 columns at a time.
constexpr int kPartBytes = 2048;
constexpr int kPartsOfRow = kTileColumns / 64, kParts = kTileBlocks * kPartsOfRow;
static_assert(kParts % kBuffers == 0, "parts take the same buffers in every tile");

struct Layout {
  unsigned stages, parts, full, empty, residual;  // addresses in shared memory
  KILN_DEVICE Layout() {
    extern __shared__ unsigned char kiln_shared_of_launch[];
    stages = (shared_address(kiln_shared_of_launch) + 1023) & ~1023u;
    parts = stages + kRing * kStageBytes;
    full = parts + 8 * kBuffers * kPartBytes;
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

// One lane's work.
struct Producer {
  const Layout& layout;
  const TensorMap& x_map;
  const TensorMap& w_map;
  unsigned rank;

  KILN_DEVICE void load_x(int slot, int stage, int row) const {
    const unsigned to = layout.stages + slot * kStageBytes, full = layout.full + slot * 8;
    if constexpr (kClusterColumns == 1) {
      load_box(to, x_map, stage * kStageDepth, row, full);
    } else {  // half of it, for both
      constexpr int kShare = kTileRows / kClusterColumns;
      load_box_for(3, to + rank * kShare * 128, x_map, stage * kStageDepth, row + rank * kShare,
                   full);
    }
  }
  KILN_DEVICE void load_w(int slot, int stage, int column) const {
    const unsigned to = layout.stages + slot * kStageBytes + kBytesOfX;
    const unsigned full = layout.full + slot * 8;
    if constexpr (kClusterRows == 1) {
      load_box(to, w_map, stage * kStageDepth, column, full);
    } else {
      constexpr int kShare = kTileColumns / kClusterRows;
      load_box_for(3, to + rank * kShare * 128, w_map, stage * kStageDepth, column + rank * kShare,
                   full);
    }
  }
  KILN_DEVICE void run(int cluster) const {
    if (!kConstantWeights) wait_for_earlier_kernels();
    // Nothing on the GPU writes what the engine holds, so that w is on its way before x is made.
    constexpr int kAhead = kRing < kStagesOfDepth ? kRing : kStagesOfDepth;
    Place place = place_of(cluster, rank);
    for (int i = 0; i < kAhead; ++i) {
      arrive_expecting(layout.full + i * 8, kStageBytes);
      load_w(i, i, place.column);
    }
    if (kConstantWeights) wait_for_earlier_kernels();
    for (int i = 0; i < kAhead; ++i) load_x(i, i, place.row);
    int slot = kAhead % kRing;
    unsigned parity = kAhead == kRing ? 0 : 1;
    for (int t = cluster; t < kTiles; t += kClusters) {
      place = place_of(t, rank);
#pragma unroll 1
      for (int stage = t == cluster ? kAhead : 0; stage < kStagesOfDepth; ++stage) {
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
  if (lane >= kCluster) return;
  if constexpr (kCluster > 1)
    arrive_in_cluster(empty, lane);
  else
    arrive(empty);
}

// Where the warps' group has multiplied `tiles` tiles of the block before, those of the other
// group counted.
KILN_DEVICE void multiply_tile(const Layout& layout, int tiles, int lane, Sums& sums) {
  int slot = tiles * kStagesOfDepth % kRing, latest = 0;
  unsigned parity = tiles * kStagesOfDepth / kRing & 1;
#pragma unroll 1
  for (int stage = 0; stage < kStagesOfDepth; ++stage) {
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

  KILN_DEVICE void load_residual(int part, const Place& place) const {
    const unsigned barrier = barriers + part % kBuffers * 8;
    arrive_expecting(barrier, kPartBytes);
    load_box(parts + part % kBuffers * kPartBytes, residual_map,
             place.column + part % kPartsOfRow * 64, place.row + part / kPartsOfRow * 64, barrier);
  }
  // The residual of the first parts is on its way while the tile is multiplied.
  KILN_DEVICE void begin(const Place& place) const {
    if (!kResidual || lane != 0) return;
    wait_for_reads_but<0>();
#pragma unroll
    for (int part = 0; part < kBuffers; ++part) load_residual(part, place);
  }
  KILN_DEVICE void run(const Sums& sums, const Place& place) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const unsigned buffer = parts + part % kBuffers * kPartBytes;
      if (kResidual) {
        wait_for_phase(barriers + part % kBuffers * 8, (taken + part) / kBuffers & 1);
      } else {
        if (lane == 0) wait_for_reads_but<kBuffers - 1>();
        __syncwarp();
      }
      const int column = place.column + part % kPartsOfRow * 64;
      const int row = place.row + part / kPartsOfRow * 64;
      make(sums[part / kPartsOfRow], part % kPartsOfRow * 8, buffer, row, column);
      show_to_copies();
      __syncwarp();
      if (lane != 0) continue;
      store_box(y_map, buffer, column, row);
      if (!kResidual || part + kBuffers >= kParts) continue;
      wait_for_reads_but<0>();
      load_residual(part + kBuffers, place);
    }
    taken += kParts;
  }
  // Results of 16 rows and 64 columns, from groups of 8 columns from `first` on.
  KILN_DEVICE void make(const float (&sums)[kTileColumns / 2], int first, unsigned buffer, int row,
                        int column) const {
#pragma unroll
    for (int two = 0; two < 4; ++two) {  // groups of 8 columns
      const unsigned at = buffer + lane % 16 * 128 + (((two * 2 + lane / 16) ^ (lane & 7)) << 4);
      unsigned residual[4] = {}, made[4];
      if (kResidual) take_matrices(residual, at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // rows 0 and 8 of the first group, then of the second
        const float* two_sums = &sums[(first + two * 2 + i / 2) * 4 + i % 2 * 2];
        made[i] =
            finish_at(operands, two_sums[0], two_sums[1], residual[i], row + lane / 4 + i % 2 * 8,
                      column + (two * 2 + i / 2) * 8 + lane % 4 * 2);
      }
      put_matrices(at, made);
    }
  }
};

KILN_DEVICE void run_consumer(const Layout& layout, int group, int warp, unsigned rank,
                              const Operands& operands, const TensorMap& residual_map,
                              const TensorMap& y_map) {
  const int lane = threadIdx.x % 32, cluster = blockIdx.x / kCluster;
  Finisher finisher{operands,
                    residual_map,
                    y_map,
                    layout.parts + warp * kBuffers * kPartBytes,
                    layout.residual + warp * kBuffers * 8,
                    lane};
  wait_for_earlier_kernels();
  Sums sums;
  if (group == 1) give_turn<256>(1);  // group 0 goes first
#pragma unroll 1
  for (int i = group; cluster + i * kClusters < kTiles; i += 2) {
    Place place = place_of(cluster + i * kClusters, rank);
    place.row += warp % 4 * 16;
    finisher.begin(place);
    wait_for_turn<256>(1 + group);
    multiply_tile(layout, i, lane, sums);
    give_turn<256>(2 - group);
    wait_for_products_but<0>();
    release(layout.empty + (i * kStagesOfDepth + kStagesOfDepth - 1) % kRing * 8, lane);
    // Nothing that uses the sums is moved above the wait.
#pragma unroll
    for (int block = 0; block < kTileBlocks; ++block) {
#pragma unroll
      for (int s = 0; s < kTileColumns / 2; ++s) {
        asm volatile("" : "+f"(sums[block][s])::"memory");
      }
    }
    finisher.run(sums, place);
  }
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
      make_barrier(layout.empty + i * 8, 4 * kCluster);
    }
    for (int i = 0; i < 8 * kBuffers; ++i) make_barrier(layout.residual + i * 8, 1);
    publish_barriers();
  }
  const auto meet = [] {
    if constexpr (kCluster > 1) {
      arrive_at_cluster();
      wait_for_cluster();
    } else {
      __syncthreads();
    }
  };
  meet();
  if (group == 0) {
    leave_registers<kProducerRegisters>();
    if (threadIdx.x == 0) Producer{layout, x_map, w_map, rank}.run(blockIdx.x / kCluster);
  } else {
    take_registers<kConsumerRegisters>();
    run_consumer(layout, group - 1, warp - 4, rank, operands, residual_map, y_map);
  }
  __syncwarp();
  if constexpr (kCluster > 1) meet();  // copies and arrivals may still be on their way to a block
}
