// x w' for few rows of x, where w is read once and its bandwidth is all that counts. A warp takes
// 8 columns (rows of w, as they lie) or a few times 8, and a part of the depth; the warps of a
// block share the depth, blocks share the columns. Each lane copies its own 16-byte pieces of w
// into shared memory, many ahead of their use and on across tiles, so that no thread waits for
// another before the sums of a tile. Sums are added in the order of the warps. The blocks of a
// cluster share the depth in turn (kSplit), so that each reads its part of x alone; each then
// finishes some elements of the tile. Results are made of elements at the same place of each part
// of a row of the product (kPartsOfRow: gate and up); a tile has as many columns of each.
//
// Constants come before this text, and finish(), which makes the results of an element of the
// product; see few_rows_kernel.cc.

constexpr int kThreads = kWarps * 32;
constexpr int kSumColumns = 8 * kGroups;  // of a tile's sums: a run of each part of a row of w'
constexpr int kTileColumns = kSumColumns / kPartsOfRow;
constexpr int kTiles = (kColumns + kTileColumns - 1) / kTileColumns;
constexpr int kElementBytes = kKind == kPlain ? 4 : kKind == kE4M3 ? 1 : 2;
constexpr int kPiece = 16 / kElementBytes;  // elements
// A step takes four pieces of each column, a stage kSteps in a row.
constexpr int kStageDepth = kSteps * 4 * kPiece;
constexpr int kDepthParts = kWarps * kSplit;
constexpr int kStages = ((kDepth + kStageDepth - 1) / kStageDepth + kDepthParts - 1) / kDepthParts;
constexpr bool kReadAhead = !kKeep && kKind != kPlain;
constexpr bool kWhole = kDepth % (kStageDepth * kDepthParts) == 0 && kColumns % kTileColumns == 0;
constexpr int kClusters = kBlocks / kSplit;
// Elements of a tile that a block of a cluster finishes.
constexpr int kShare = (kRows * kTileColumns + kSplit - 1) / kSplit;

struct alignas(16) Piece {
  unsigned words[4];
};
using RingSlot = Piece[kSteps][kGroups][kThreads];
using TileSums = float[kWarps][kRows][kSumColumns];
template <int kOfCluster>
struct Shares {
  float shares[2][kOfCluster][kShare]
              [kPartsOfRow];  // what each block of the cluster adds, by turns
};
template <>
struct Shares<1> {};
struct Shared : Shares<kSplit> {
  RingSlot ring[kRing];
  TileSums sums[kTurns];  // by turns one barrier a tile is enough
};

// Element `k` of the depth where a lane's piece of a step begins.
KILN_DEVICE int piece_at(int stage, int step) {
  const int warp = blockIdx.x % kSplit * kWarps + threadIdx.x / 32, part = threadIdx.x % 4;
  return ((warp * kStages + stage) * kSteps + step) * 4 * kPiece + part * kPiece;
}

// Tiles behind those that the ring holds, into the second cache: memory is busy with them while the
// block waits for x. The threads share the columns.
KILN_DEVICE void fetch_ahead(const char* w, int tile) {
  constexpr int kOfColumn = kThreads / kSumColumns > 0 ? kThreads / kSumColumns : 1;
  constexpr int kPieces = kDepth / kPiece, kEach = (kPieces + kOfColumn - 1) / kOfColumn;
#pragma unroll
  for (int i = 0; i < kAhead; ++i, tile += kClusters) {
    for (int at = threadIdx.x; at < kSumColumns * kOfColumn; at += kThreads) {
      const int part = at / kOfColumn / kTileColumns, first = at % kOfColumn * kEach;
      const int column = tile * kTileColumns + at / kOfColumn % kTileColumns;
      const int pieces = kPieces - first < kEach ? kPieces - first : kEach;
      if (tile >= kTiles || column >= kColumns || pieces <= 0) continue;
      const long long piece = static_cast<long long>(part * kColumns + column) * kPieces + first;
      fetch_into_second_cache(w + piece * 16, pieces * 16);
    }
  }
}

KILN_DEVICE void fetch(RingSlot& slot, const char* w, int tile, int stage) {
  const unsigned long long policy = kOnce ? leaves_first() : 0;
  if (tile < kTiles) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      constexpr int kOfPart = kGroups / kPartsOfRow;
      const int column = tile * kTileColumns + group % kOfPart * 8 + threadIdx.x % 32 / 4;
      const long long row_of_w = group / kOfPart * kColumns + column;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int k = piece_at(stage, step);
        const bool there = kWhole || (k < kDepth && column < kColumns);
        const long long at = there ? row_of_w * kDepth + k : 0;
        Piece* to = &slot[step][group][threadIdx.x];
        if constexpr (kOnce)
          copy_async_of_line(to, w + at * kElementBytes, there, policy);
        else
          copy_async_of_line(to, w + at * kElementBytes, there);
      }
    }
  }
  close_copies();
}

// This lane's pieces of x, one of each row that it has a part in.
KILN_DEVICE void load_piece(const char* x, int row, int k, unsigned (&piece)[4]) {
  if (row < kRows && (kWhole || k < kDepth)) {
    load_words<16>(x + (static_cast<long long>(row) * kDepth + k) * kElementBytes, piece);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) piece[i] = 0;
  }
}

// Tensor cores, whose instructions take a side of 16 and one of 8. Which element of a step is which
// along the depth does not matter as long as both agree: a lane's piece is two steps' worth.
// Those of 8 bits are made f16 first, exactly: compute capability 9.0 has no such instruction for
// them, and what the compiler puts in its place converts x again for every tile.
constexpr int kWords = kKind == kE4M3 ? 8 : 4;  // of a piece
KILN_DEVICE void widen(const unsigned (&piece)[4], unsigned (&words)[kWords]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kWords == 8)
      halves_of_e4m3(piece[i], words[2 * i], words[2 * i + 1]);
    else
      words[i] = piece[i];
  }
}

template <int kOf, bool kFewest = kRows <= 8>
struct Product {  // x is the side of 16
  static constexpr int kRowTiles = (kRows + 15) / 16;
  struct Activations {
    unsigned pieces[kRowTiles][2][kWords];
    KILN_DEVICE void load(const char* x, int k) {
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          unsigned piece[4];
          load_piece(x, tile * 16 + half * 8 + threadIdx.x % 32 / 4, k, piece);
          widen(piece, pieces[tile][half]);
        }
      }
    }
  };

  float sums[kGroups][kRowTiles][4] = {};
  KILN_DEVICE void add(const Activations& x, const Piece (&w)[kGroups]) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      unsigned b[kWords];
      widen(w[group].words, b);
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
        const auto& [low, high] = x.pieces[tile];
#pragma unroll
        for (int i = 0; i < kWords; i += 2) {
          const unsigned a[4] = {low[i], high[i], low[i + 1], high[i + 1]};
          multiply_accumulate<kOf != kBF16>(sums[group][tile], a, b[i], b[i + 1]);
        }
      }
    }
  }
  KILN_DEVICE void put(TileSums& to) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < kRowTiles * 4; ++i) {
        const int row = i / 4 * 16 + i % 4 / 2 * 8 + lane / 4;
        if (row >= kRows) continue;
        to[warp][row][group * 8 + lane % 4 * 2 + i % 2] = sums[group][i / 4][i % 4];
      }
    }
  }
};

template <int kOf>
struct Product<kOf, true> {  // x is the side of 8, two groups of columns that of 16
  struct Activations {
    unsigned words[kWords];
    KILN_DEVICE void load(const char* x, int k) {
      unsigned piece[4];
      load_piece(x, threadIdx.x % 32 / 4, k, piece);
      widen(piece, words);
    }
  };

  float sums[(kGroups + 1) / 2][4] = {};
  KILN_DEVICE void add(const Activations& x, const Piece (&w)[kGroups]) {
#pragma unroll
    for (int group = 0; group < kGroups; group += 2) {
      unsigned low[kWords], high[kWords] = {};
      widen(w[group].words, low);
      if (group + 1 < kGroups) widen(w[group + 1].words, high);
#pragma unroll
      for (int i = 0; i < kWords; i += 2) {
        const unsigned a[4] = {low[i], high[i], low[i + 1], high[i + 1]};
        multiply_accumulate<kOf != kBF16>(sums[group / 2], a, x.words[i], x.words[i + 1]);
      }
    }
  }
  KILN_DEVICE void put(TileSums& to) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = lane % 4 * 2 + i;
        if (row >= kRows) continue;
        to[warp][row][group * 8 + lane / 4] = sums[group / 2][group % 2 * 2 + i];
      }
    }
  }
};

// Every lane adds up its own elements of a column, for all rows.
template <>
struct Product<kPlain, kRows <= 8> {
  struct Activations {
    unsigned pieces[kRows][4];
    KILN_DEVICE void load(const char* x, int k) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) load_piece(x, row, k, pieces[row]);
    }
  };

  float sums[kGroups][kRows] = {};
  KILN_DEVICE void add(const Activations& x, const Piece (&w)[kGroups]) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        float& sum = sums[group][row];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum = fmaf(float_of(x.pieces[row][i]), float_of(w[group].words[i]), sum);
        }
      }
    }
  }
  KILN_DEVICE void put(TileSums& to) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        float sum = sums[group][row];
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        if (lane % 4 == 0) to[warp][row][group * 8 + lane / 4] = sum;
      }
    }
  }
};

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
