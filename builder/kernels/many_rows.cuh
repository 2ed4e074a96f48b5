// x w' for many rows of x. One warp copies tiles of x and w into a ring of stages in shared memory;
// two groups of four warps take every second tile of the product each. One multiplies while the
// other makes results of its sums and stores them, so that a block's tensor cores never wait for
// what follows the product. Blocks go on from tile to tile until all are done; those of a cluster
// share what they all read. Where tiles are few, the blocks of a cluster share the depth of one
// instead (kSplits): each gets what the others have summed of some of the tile's rows, and makes
// results of these.
//
// many_rows_tiles.cuh and many_rows_results.cuh come before this text.

KILN_DEVICE void meet() {
  if constexpr (kCluster > 1) {
    arrive_at_cluster();
    wait_for_cluster();
  } else {
    __syncthreads();
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
    wait_for_products_but<0>();
    hold(sums);
    release(layout.empty + (i * kStagesOfDepth + kStagesOfDepth - 1) % kRing * 8, lane);
    finisher.run(sums, place);
  }
}

// A block's share of the depth of one tile. `warp` of 4 has sums of 16 rows, which block
// warp / kGroups of the cluster finishes; there warps add up those of a part each, in the order of
// the blocks.
KILN_DEVICE void run_share(const Layout& layout, int warp, unsigned rank, Finisher& finisher) {
  const int lane = finisher.lane;
  const Place tile = place_of(blockIdx.x / kCluster, 0);
  // Part `unit` of those that the block finishes.
  constexpr int kUnits = kGroups * kPartsOfRow, kTurns = (kUnits + 3) / 4;
  static_assert(kSplits == 1 || kTurns == 1 || (kTurns <= kBuffers && !kResidual), "a buffer each");
  const auto row_of = [&](int unit) {
    return tile.row + (static_cast<int>(rank) * kGroups + unit / kPartsOfRow) * 16;
  };
  const auto column_of = [&](int unit) { return tile.column + unit % kPartsOfRow * kPartColumns; };
  if (kResidual && warp < kUnits && lane == 0) {
    finisher.load_residual(0, row_of(warp), column_of(warp));
  }
  Sums sums = {};
  multiply_tile(layout, 0, stages_of(rank).count, lane, sums);
  wait_for_products_but<0>();
  hold(sums);
  constexpr int kPieces = kLaneSums / 4, kPiecesOfPart = kPartColumns / 8;  // of 16 bytes
  const unsigned to = in_cluster(layout.exchange, warp / kGroups) +
                      ((warp % kGroups * kSplits + rank) * kPieces * 32 + lane) * 16;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    store_in_cluster(to + piece * 512, &sums[0][piece * 4]);
  }
  meet();
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int unit = turn * 4 + warp;
    if (unit >= kUnits) return;
    float total[kLaneSums] = {};                              // but for those of other parts
    constexpr int kAtOnce = kPiecesOfPart > 8 ? 1 : kSplits;  // as registers allow
#pragma unroll kAtOnce
    for (int block = 0; block < kSplits; ++block) {
      const int first =
          (unit / kPartsOfRow * kSplits + block) * kPieces + unit % kPartsOfRow * kPiecesOfPart;
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
#pragma unroll
        for (int piece = 0; piece < kPiecesOfPart; ++piece) {
          const int at = half * kPieces / kHalves + piece;
          float four[4];
          load_four(four, layout.exchange + ((first + at) * 32 + lane) * 16);
#pragma unroll
          for (int i = 0; i < 4; ++i) total[at * 4 + i] += four[i];
        }
      }
    }
    finisher.finish_part(total, turn, 0, row_of(unit), column_of(unit));
  }
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
