// x w' for few rows of x, where w is read once and its bandwidth is all that counts. A warp takes
// 8 columns (rows of w, as they lie) or a few times 8, and a part of the depth; the warps of a
// block share the depth, blocks share the columns. Each lane copies its own 16-byte pieces of w
// into shared memory, many ahead of their use and on across tiles, so that no thread waits for
// another before the sums of a tile. Sums are added in the order of the warps.
//
// Constants come before this text, and finish(), which makes the results of an element of the
// product; see few_rows_kernel.cc.

constexpr int kThreads = kWarps * 32;
constexpr int kTileColumns = 8 * kGroups;
constexpr int kTiles = (kColumns + kTileColumns - 1) / kTileColumns;
constexpr int kElementBytes = kKind == kPlain ? 4 : 2;
constexpr int kPiece = 16 / kElementBytes;  // elements
// A step takes four pieces of each column, a stage kSteps in a row.
constexpr int kStageDepth = kSteps * 4 * kPiece;
constexpr int kStages = ((kDepth + kStageDepth - 1) / kStageDepth + kWarps - 1) / kWarps;
constexpr bool kWhole = kDepth % (kStageDepth * kWarps) == 0 && kColumns % kTileColumns == 0;

struct alignas(16) Piece {
  unsigned words[4];
};
using RingSlot = Piece[kSteps][kGroups][kThreads];
using TileSums = float[kWarps][kRows][kTileColumns];

// Element `k` of the depth where a lane's piece of a step begins.
KILN_DEVICE int piece_at(int stage, int step) {
  const int warp = threadIdx.x / 32, part = threadIdx.x % 4;
  return ((warp * kStages + stage) * kSteps + step) * 4 * kPiece + part * kPiece;
}

KILN_DEVICE void fetch(RingSlot& slot, const char* w, int tile, int stage) {
  const int column = tile * kTileColumns + threadIdx.x % 32 / 4;
  if (tile < kTiles) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int k = piece_at(stage, step);
        const bool there = kWhole || (k < kDepth && column + 8 * group < kColumns);
        const long long at = there ? (column + 8ll * group) * kDepth + k : 0;
        copy_async_of_line(&slot[step][group][threadIdx.x], w + at * kElementBytes, there);
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

// Tensor cores: x is the side of 16 rows, w that of 8 columns. Which element of a step is which
// along the depth does not matter as long as both sides agree: a lane's piece is two steps' worth.
template <int kOf>
struct Product {
  static constexpr int kRowTiles = (kRows + 15) / 16, kHalves = kRows > 8 ? 2 : 1;
  struct Activations {
    unsigned pieces[kRowTiles][2][4];
    KILN_DEVICE void load(const char* x, int k) {
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = half < kHalves ? tile * 16 + half * 8 + threadIdx.x % 32 / 4 : kRows;
          load_piece(x, row, k, pieces[tile][half]);
        }
      }
    }
  };

  float sums[kGroups][kRowTiles][4] = {};
  KILN_DEVICE void add(const Activations& x, int group, const unsigned (&w)[4]) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const unsigned a[4] = {x.pieces[tile][0][i], x.pieces[tile][1][i], x.pieces[tile][0][i + 1],
                               x.pieces[tile][1][i + 1]};
        multiply_accumulate<kOf == kF16>(sums[group][tile], a, w[i], w[i + 1]);
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

// Every lane adds up its own elements of a column, for all rows.
template <>
struct Product<kPlain> {
  struct Activations {
    unsigned pieces[kRows][4];
    KILN_DEVICE void load(const char* x, int k) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) load_piece(x, row, k, pieces[row]);
    }
  };

  float sums[kGroups][kRows] = {};
  KILN_DEVICE void add(const Activations& x, int group, const unsigned (&w)[4]) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[group][row] = fmaf(float_of(x.pieces[row][i]), float_of(w[i]), sums[group][row]);
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

KILN_DEVICE void finish_tile(const TileSums& sums, int tile, const Operands& operands) {
  for (int i = threadIdx.x; i < kRows * kTileColumns; i += kThreads) {
    const int row = i / kTileColumns, column = i % kTileColumns;
    if (tile * kTileColumns + column >= kColumns) continue;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp][row][column];
    finish(operands, sum, row * kColumns + tile * kTileColumns + column);
  }
}

KILN_DEVICE void few_rows(const char* x, const char* w, const Operands& operands) {
  KILN_SHARED RingSlot ring[kRing];
  KILN_SHARED TileSums sums[kTurns];  // by turns one barrier a tile is enough
  let_next_kernel_start();
  // Nothing on the GPU writes what the engine holds, so that w is on its way before x is made.
  if (!kConstantWeights) wait_for_earlier_kernels();
  int next_tile = blockIdx.x, next_stage = 0;
  const auto fetch_next = [&](RingSlot& slot) {
    fetch(slot, w, next_tile, next_stage);
    if (++next_stage < kStages) return;
    next_stage = 0;
    next_tile += kBlocks;
  };
#pragma unroll
  for (int i = 0; i < kRing; ++i) fetch_next(ring[i]);
  if (kConstantWeights) wait_for_earlier_kernels();

  // What a lane reads of x is the same for all tiles.
  typename Product<kKind>::Activations activations[kKeep ? kStages * kSteps : kSteps];
  const auto load_stage = [&](int stage) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      activations[kKeep ? stage * kSteps + step : step].load(x, piece_at(stage, step));
    }
  };
  constexpr int kUnrolled = kKeep ? kStages : 2;
  if (kKeep) {
#pragma unroll
    for (int stage = 0; stage < kUnrolled; ++stage) load_stage(stage);
  }
  int slot = 0, turn = 0;
  for (int tile = blockIdx.x; tile < kTiles; tile += kBlocks) {
    Product<kKind> product;
#pragma unroll kUnrolled
    for (int stage = 0; stage < kStages; ++stage) {
      if (!kKeep) load_stage(stage);
      wait_for_copies_but<kRing - 1>();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          const Piece weights = ring[slot][step][group][threadIdx.x];
          product.add(activations[kKeep ? stage * kSteps + step : step], group, weights.words);
        }
      }
      fetch_next(ring[slot]);
      slot = slot + 1 == kRing ? 0 : slot + 1;
    }
    product.put(sums[turn]);
    __syncthreads();
    finish_tile(sums[turn], tile, operands);
    if (kTurns == 1)
      __syncthreads();
    else
      turn ^= 1;
  }
}
