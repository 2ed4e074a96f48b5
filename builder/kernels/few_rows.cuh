// x w' for few rows of x, where w is read once and its bandwidth is all that counts. A warp takes
// 8 columns (rows of w, as they lie) or a few times 8, and a part of the depth; the warps of a
// block share the depth, blocks share the columns. Each lane copies its own 16-byte pieces of w
// into shared memory, many ahead of their use and on across tiles, so that no thread waits for
// another before the sums of a tile. Sums are added in the order of the warps. The blocks of a
// cluster share the depth in turn (kSplit), so that each reads its part of x alone; each then
// finishes some elements of the tile. Results are made of elements at the same place of each part
// of a row of the product (kPartsOfRow: gate and up); a tile has as many columns of each.
//
// finish(), which makes the results of an element of the product, few_rows_tiles.cuh and
// few_rows_products.cuh come before this text.

// Element `i` of a tile, from the sums of each part of the row.
KILN_DEVICE void finish_element(const float (&sums)[kPartsOfRow], int i, int tile,
                                const Operands& operands) {
  const int column = tile * kTileColumns + i % kTileColumns;
  if (column < kColumns) finish(operands, sums, i / kTileColumns, column);
}

KILN_DEVICE float sum_of_warps(const TileSums& sums, int i, int part) {
  const int column = part * kTileColumns + i % kTileColumns;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp][i / kTileColumns][column];
  return sum;
}

KILN_DEVICE void finish_tile(const TileSums& sums, int tile, const Operands& operands) {
  for (int i = threadIdx.x; i < kRows * kTileColumns; i += kThreads) {
    float elements[kPartsOfRow];
#pragma unroll
    for (int part = 0; part < kPartsOfRow; ++part) elements[part] = sum_of_warps(sums, i, part);
    finish_element(elements, i, tile, operands);
  }
}

// The same by the blocks of a cluster, in whose order their sums are added.
template <class SharedOfBlock>
KILN_DEVICE void finish_tile_together(SharedOfBlock& shared, int sums_turn, int turn, int tile,
                                      const Operands& operands) {
  const int rank = blockIdx.x % kSplit;
  for (int i = threadIdx.x; i < kRows * kTileColumns; i += kThreads) {
    const int block = i / kShare;
#pragma unroll
    for (int part = 0; part < kPartsOfRow; ++part) {
      write_in_cluster(&shared.shares[turn][rank][i - block * kShare][part], block,
                       sum_of_warps(shared.sums[sums_turn], i, part));
    }
  }
  arrive_at_cluster();
  wait_for_cluster();
  for (int i = threadIdx.x; i < kShare; i += kThreads) {
    if (rank * kShare + i >= kRows * kTileColumns) break;
    float elements[kPartsOfRow] = {};
#pragma unroll
    for (int block = 0; block < kSplit; ++block) {
#pragma unroll
      for (int part = 0; part < kPartsOfRow; ++part) {
        elements[part] += shared.shares[turn][block][i][part];
      }
    }
    finish_element(elements, rank * kShare + i, tile, operands);
  }
}

KILN_DEVICE void few_rows(const char* x, const char* w, const Operands& operands) {
  KILN_SHARED_OF_LAUNCH(Shared, shared);
  auto& ring = shared.ring;
  const int first_tile = blockIdx.x / kSplit;
  // Stages that are not under way; with kLate of them left the next kernel may start.
  int left = (kTiles - first_tile + kClusters - 1) / kClusters * kStages;
  if (kLate < 0 || left <= kLate) let_next_kernel_start();
  if (kSplit > 1) arrive_at_cluster();  // nothing is written to a block that has not started
  // Nothing on the GPU writes what the engine holds, so that w is on its way before x is made.
  if (!kConstantWeights) wait_for_earlier_kernels();
  int next_tile = first_tile, next_stage = 0;
  const auto fetch_next = [&](RingSlot& slot) {
    fetch(slot, w, next_tile, next_stage);
    if (kLate >= 0 && --left == kLate) let_next_kernel_start();
    if (++next_stage < kStages) return;
    next_stage = 0;
    next_tile += kClusters;
  };
#pragma unroll
  for (int i = 0; i < kRing; ++i) fetch_next(ring[i]);
  if (kAhead > 0) fetch_ahead(w, first_tile + kRing / kStages * kClusters);
  if (kConstantWeights) wait_for_earlier_kernels();

  // What a lane reads of x is the same for all tiles. What it does not keep it reads a stage ahead,
  // or, where rows are summed by each lane, when it comes to it: they take the registers of both.
  constexpr int kHeld = kKeep ? kStages : kReadAhead ? 2 : 1;
  constexpr int kAtOnce = kKeep ? kStages : kReadAhead ? 1 : 0;
  using Activations = typename Product<kKind>::Activations[kSteps];
  Activations activations[kHeld];
  const auto load_stage = [&](int stage, Activations& to) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) to[step].load(x, piece_at(stage, step));
  };
#pragma unroll
  for (int stage = 0; stage < kAtOnce; ++stage) load_stage(stage, activations[stage]);
  constexpr int kUnrolled = kKeep ? kStages : 2;
  int slot = 0, turn = 0;
  for (int tile = first_tile; tile < kTiles; tile += kClusters) {
    Product<kKind> product;
#pragma unroll kUnrolled
    for (int stage = 0; stage < kStages; ++stage) {
      if (!kKeep) load_stage(kReadAhead ? (stage + 1) % kStages : stage, activations[kHeld - 1]);
      wait_for_copies_but<kRing - 1>();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        Piece weights[kGroups];
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          weights[group] = ring[slot][step][group][threadIdx.x];
        }
        product.add(activations[kKeep ? stage : 0][step], weights);
      }
      if (kReadAhead) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
          activations[0][step] = activations[kHeld - 1][step];
      }
      fetch_next(ring[slot]);
      slot = slot + 1 == kRing ? 0 : slot + 1;
    }
    const int sums_turn = kTurns == 1 ? 0 : turn;
    product.put(shared.sums[sums_turn]);
    __syncthreads();
    if constexpr (kSplit > 1) {
      if (tile == first_tile) wait_for_cluster();
      finish_tile_together(shared, sums_turn, turn, tile, operands);
    } else {
      finish_tile(shared.sums[sums_turn], tile, operands);
      if (kTurns == 1) __syncthreads();
    }
    turn ^= 1;
  }
}
