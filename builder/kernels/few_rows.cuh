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
constexpr bool kAhead = !kKeep && kKind != kPlain;
constexpr bool kWhole = kDepth % (kStageDepth * kWarps) == 0 && kColumns % kTileColumns == 0;

struct alignas(16) Piece {
  unsigned words[4];
};
using RingSlot = Piece[kSteps][kGroups][kThreads];
using TileSums = float[kWarps][kRows][kTileColumns];
struct Shared {
  RingSlot ring[kRing];
  TileSums sums[kTurns];  // by turns one barrier a tile is enough
};

// Element `k` of the depth where a lane's piece of a step begins.
KILN_DEVICE int piece_at(int stage, int step) {
  const int warp = threadIdx.x / 32, part = threadIdx.x % 4;
  return ((warp * kStages + stage) * kSteps + step) * 4 * kPiece + part * kPiece;
}

KILN_DEVICE void fetch(RingSlot& slot, const char* w, int tile, int stage) {
  const unsigned long long policy = kOnce ? leaves_first() : 0;
  const int column = tile * kTileColumns + threadIdx.x % 32 / 4;
  if (tile < kTiles) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int k = piece_at(stage, step);
        const bool there = kWhole || (k < kDepth && column + 8 * group < kColumns);
        const long long at = there ? (column + 8ll * group) * kDepth + k : 0;
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
template <int kOf, bool kFewest = kRows <= 8>
struct Product {  // x is the side of 16
  static constexpr int kRowTiles = (kRows + 15) / 16;
  struct Activations {
    unsigned pieces[kRowTiles][2][4];
    KILN_DEVICE void load(const char* x, int k) {
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          load_piece(x, tile * 16 + half * 8 + threadIdx.x % 32 / 4, k, pieces[tile][half]);
        }
      }
    }
  };

  float sums[kGroups][kRowTiles][4] = {};
  KILN_DEVICE void add(const Activations& x, const Piece (&w)[kGroups]) {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const auto& [low, high] = x.pieces[tile];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          const unsigned a[4] = {low[i], high[i], low[i + 1], high[i + 1]};
          multiply_accumulate<kOf == kF16>(sums[group][tile], a, w[group].words[i],
                                           w[group].words[i + 1]);
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
    unsigned piece[4];
    KILN_DEVICE void load(const char* x, int k) { load_piece(x, threadIdx.x % 32 / 4, k, piece); }
  };

  float sums[(kGroups + 1) / 2][4] = {};
  KILN_DEVICE void add(const Activations& x, const Piece (&w)[kGroups]) {
#pragma unroll
    for (int group = 0; group < kGroups; group += 2) {
      const Piece low = w[group], high = group + 1 < kGroups ? w[group + 1] : Piece{};
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const unsigned a[4] = {low.words[i], high.words[i], low.words[i + 1], high.words[i + 1]};
        multiply_accumulate<kOf == kF16>(sums[group / 2], a, x.piece[i], x.piece[i + 1]);
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
  KILN_SHARED_OF_LAUNCH(Shared, shared);
  auto& ring = shared.ring;
  auto& sums = shared.sums;
  if (!kLate) let_next_kernel_start();
  // Nothing on the GPU writes what the engine holds, so that w is on its way before x is made.
  if (!kConstantWeights) wait_for_earlier_kernels();
  int next_tile = blockIdx.x, next_stage = 0;
  const auto fetch_next = [&](RingSlot& slot) {
    fetch(slot, w, next_tile, next_stage);
    if (++next_stage < kStages) return;
    next_stage = 0;
    next_tile += kBlocks;
    if (kLate && next_tile >= kTiles) let_next_kernel_start();
  };
#pragma unroll
  for (int i = 0; i < kRing; ++i) fetch_next(ring[i]);
  if (kConstantWeights) wait_for_earlier_kernels();

  // What a lane reads of x is the same for all tiles. What it does not keep it reads a stage ahead,
  // or, where rows are summed by each lane, when it comes to it: they take the registers of both.
  constexpr int kHeld = kKeep ? kStages : kAhead ? 2 : 1;
  constexpr int kAtOnce = kKeep ? kStages : kAhead ? 1 : 0;
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
  for (int tile = blockIdx.x; tile < kTiles; tile += kBlocks) {
    Product<kKind> product;
#pragma unroll kUnrolled
    for (int stage = 0; stage < kStages; ++stage) {
      if (!kKeep) load_stage(kAhead ? (stage + 1) % kStages : stage, activations[kHeld - 1]);
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
      if (kAhead) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
          activations[0][step] = activations[kHeld - 1][step];
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
