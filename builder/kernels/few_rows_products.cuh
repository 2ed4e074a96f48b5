// Products of few_rows.cuh: what a lane reads of x, and its sums of a tile.

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
