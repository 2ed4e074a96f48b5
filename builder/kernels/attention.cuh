// softmax(scale q k' + mask) v in one kernel, for f16 and bf16: a warp holds 16 rows of q and of
// the result in registers and passes over tiles of k and v in shared memory, with the softmax
// corrected as its maximum grows. Dao, FlashAttention-2 (2023); Milakov and Gimelshein, Online
// normalizer calculation for softmax (2018).
//
// Constants come before this text; see attention_kernel.cc. A score is product kScale + mask, and
// 2 ^ (kPowerScale (score - most)) weighs it.

constexpr int kThreads = kWarps * 32;
constexpr int kBlockRows = kWarps * 16;
constexpr int kRowTiles = (kRows + kBlockRows - 1) / kBlockRows;
// 16 bytes between the rows of a tile let 8 rows be read without two on one bank.
constexpr int kKeyPitch = kDepth * 2 + 16, kValuePitch = kValueDepth * 2 + 16;
KILN_DEVICE float minus_infinity() { return float_of(0xFF800000u); }
// Below every score that counts: a row of nothing but masked scores weighs all the same, as with
// the large negative numbers that models mask with. With kMaskedRowZero a mask's -inf stays, and
// a row of those has no weight; f16 has no number that low then.
constexpr float kLeastScore = -30000.0f;
constexpr bool kHasLeastScore = kMaskBytes > 0 && !(kMaskedRowZero && kMaskBytes == 2 && kF16);
constexpr bool kWholeTiles = kColumns % kTile == 0, kWholeRows = kRows % kBlockRows == 0;
// A tile's columns in pieces of 16; those of a last one that is cut short.
constexpr int kTilePieces = kTile / 16;
constexpr int kLastPieces = kWholeTiles ? kTilePieces : (kColumns % kTile + 15) / 16;
// Whether an even column of the mask and the next can be loaded at once.
constexpr bool kMaskPairs = kMaskColumn == 1 && kColumns % 2 == 0 && kMaskOffset % 2 == 0 &&
                            kMaskBatch % 2 == 0 && kMaskHead % 2 == 0 && kMaskRow % 2 == 0;
constexpr int kMaskWords = kMaskPairs && kMaskBytes == 2 ? 1 : 2;  // of two columns

KILN_DEVICE unsigned pack(float low, float high) {
  return kF16 ? pack_f16(low, high) : pack_bf16(low, high);
}

// kTile rows of `depth` elements from row `first` on; zeros past the end.
template <int kWidth, int kPitch>
KILN_DEVICE void load_tile(unsigned char* tile, const char* from, int first, long long stride) {
  constexpr unsigned kPieces = kWidth / 8, kAll = kTile * kPieces;
#pragma unroll
  for (unsigned begin = 0; begin < kAll; begin += kThreads) {
    const unsigned i = begin + threadIdx.x;
    if (kAll % kThreads != 0 && i >= kAll) break;
    const int row = static_cast<int>(i / kPieces), piece = static_cast<int>(i % kPieces);
    const bool there = kWholeTiles || first + row < kColumns;
    const long long at = there ? (first + row) * stride + piece * 8 : 0;
    copy_async(tile + row * kPitch + piece * 16, from + at * 2, there);
  }
}

// An even column of a row of the mask, and the next. Past the end they are any others.
KILN_DEVICE void load_mask(const char* row, int column, unsigned (&words)[kMaskWords]) {
  if constexpr (kMaskPairs) {
    const int at = kWholeTiles || column < kColumns ? column : 0;
    load_words<2 * kMaskBytes>(row + at * kMaskBytes, words);
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = column + i < kColumns ? column + i : 0;
      load_words<kMaskBytes>(row + at * kMaskColumn * kMaskBytes, words + i);
    }
  }
}
KILN_DEVICE float mask_at(const unsigned (&words)[kMaskWords], int i) {
  const unsigned bits = kMaskWords == 2 ? words[i] : i == 0 ? words[0] & 0xFFFFu : words[0] >> 16;
  return kMaskBytes == 4 ? float_of(bits) : kF16 ? float_of_f16(bits) : float_of(bits << 16);
}

template <bool kEdge>
KILN_DEVICE float score_of(float product, float added, int row, int column) {
  float score = kMaskBytes > 0 ? fmaf(product, kScale, added) : product * kScale;
  if (kHasLeastScore) {
    const bool hidden = kMaskedRowZero && added == minus_infinity();
    score = max_or_nan(score, hidden ? minus_infinity() : kLeastScore);
  }
  const bool outside = (!kWholeTiles && column >= kColumns) || (kCausal && column > row);
  return kEdge && outside ? minus_infinity() : score;
}

// What a warp has summed up for rows lane / 4 and 8 below.
struct Sums {
  float sums[kValueDepth / 8][4] = {};
  float most[2] = {minus_infinity(), minus_infinity()}, total[2] = {};  // most: as a power
};

// Adds a tile; at an edge columns end in it, or rows may not look at all of it.
template <bool kEdge>
KILN_DEVICE void add_tile(const unsigned char* keys, const unsigned char* values,
                          const unsigned (&queries)[kDepth / 16][4],
                          const unsigned (&masks)[kTile / 8][2][kMaskWords], int first_column,
                          int row, Sums& made) {
  const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
  constexpr int kUsed = kEdge && !kCausal ? kLastPieces : kTilePieces;
  float scores[2 * kUsed][4] = {};
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step) {
#pragma unroll
    for (int n = 0; n < kUsed; ++n) {
      unsigned b[4];
      load_matrices(b, keys + (n * 16 + lane / 16 * 8 + lane % 8) * kKeyPitch + step * 32 +
                           lane / 8 % 2 * 16);
      multiply_accumulate<kF16>(scores[2 * n], queries[step], b[0], b[1]);
      multiply_accumulate<kF16>(scores[2 * n + 1], queries[step], b[2], b[3]);
    }
  }

  float tops[2] = {minus_infinity(), minus_infinity()};
#pragma unroll
  for (int n = 0; n < 2 * kUsed; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float added = kMaskBytes > 0 ? mask_at(masks[n][i / 2], i % 2) : 0;
      const int column = first_column + n * 8 + pair + i % 2;
      scores[n][i] = score_of<kEdge>(scores[n][i], added, row + i / 2 * 8, column);
      tops[i / 2] = max_or_nan(tops[i / 2], scores[n][i]);
    }
  }
  float bases[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    tops[h] = max_or_nan(tops[h], shuffle_xor(tops[h], 1));
    tops[h] = max_or_nan(tops[h], shuffle_xor(tops[h], 2));
    const float top = max_or_nan(made.most[h], tops[h] * kPowerScale);
    bases[h] = top == minus_infinity() ? 0 : top;
    const float fade = quick_power_of_2(made.most[h] - bases[h]);
    made.most[h] = top;
    made.total[h] *= fade;
#pragma unroll
    for (int n = 0; n < kValueDepth / 8; ++n) {
      made.sums[n][2 * h] *= fade;
      made.sums[n][2 * h + 1] *= fade;
    }
  }

#pragma unroll
  for (int step = 0; step < kUsed; ++step) {
    unsigned weights[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int n = 2 * step + part / 2, h = part % 2;
      const float low = quick_power_of_2(fmaf(scores[n][2 * h], kPowerScale, -bases[h]));
      const float high = quick_power_of_2(fmaf(scores[n][2 * h + 1], kPowerScale, -bases[h]));
      made.total[h] += low + high;
      weights[part] = pack(low, high);
    }
#pragma unroll
    for (int n = 0; n < kValueDepth / 16; ++n) {
      unsigned b[4];
      load_matrices_transposed(b, values + (step * 16 + lane / 8 % 2 * 8 + lane % 8) * kValuePitch +
                                      n * 32 + lane / 16 * 16);
      multiply_accumulate<kF16>(made.sums[2 * n], weights, b[0], b[1]);
      multiply_accumulate<kF16>(made.sums[2 * n + 1], weights, b[2], b[3]);
    }
  }
}

KILN_KERNEL(kThreads)
kiln_attention(const char* q, const char* k, const char* v, const char* mask, char* y) {
  alignas(16) KILN_SHARED unsigned char keys[2][kTile * kKeyPitch];
  alignas(16) KILN_SHARED unsigned char values[2][kTile * kValuePitch];
  begin_kernel();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = static_cast<int>(blockIdx.x % kRowTiles) * kBlockRows;
  const long long head = blockIdx.x / kRowTiles % kHeads, batch = blockIdx.x / kRowTiles / kHeads;
  const long long shared_head = head / (kHeads / kKeyHeads);
  const int row = first + warp * 16 + lane / 4;  // and row + 8
  const int pair = lane % 4 * 2;
  q += (kQOffset + batch * kQBatch + head * kQHead) * 2;
  k += (kKOffset + batch * kKBatch + shared_head * kKHead) * 2;
  v += (kVOffset + batch * kVBatch + shared_head * kVHead) * 2;
  y += (kYOffset + batch * kYBatch + head * kYHead) * 2;
  const char* mask_rows[2] = {mask, mask};
#pragma unroll
  for (int h = 0; h < 2 && kMaskBytes > 0; ++h) {
    const int r = kWholeRows || row + h * 8 < kRows ? row + h * 8 : 0;
    mask_rows[h] +=
        (kMaskOffset + batch % kMaskPeriod * kMaskBatch + head * kMaskHead + r * kMaskRow) *
        kMaskBytes;
  }

  const int columns = kCausal && first + kBlockRows < kColumns ? first + kBlockRows : kColumns;
  const int tiles = (columns + kTile - 1) / kTile;
  load_tile<kDepth, kKeyPitch>(keys[0], k, 0, kKRow);
  load_tile<kValueDepth, kValuePitch>(values[0], v, 0, kVRow);
  close_copies();

  unsigned queries[kDepth / 16][4];
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + i % 2 * 8;
      queries[step][i] = 0;
      if (kWholeRows || r < kRows) {
        load_words<4>(q + (r * kQRow + step * 16 + i / 2 * 8 + pair) * 2, &queries[step][i]);
      }
    }
  }

  Sums made;
  const bool idle = !kWholeRows && first + warp * 16 >= kRows;  // it loads for the others
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      load_tile<kDepth, kKeyPitch>(keys[(tile + 1) % 2], k, (tile + 1) * kTile, kKRow);
      load_tile<kValueDepth, kValuePitch>(values[(tile + 1) % 2], v, (tile + 1) * kTile, kVRow);
    }
    close_copies();
    unsigned masks[kTile / 8][2][kMaskWords];
#pragma unroll
    for (int i = 0; i < kTile / 8 * 2 && kMaskBytes > 0; ++i) {
      load_mask(mask_rows[i % 2], tile * kTile + i / 2 * 8 + pair, masks[i / 2][i % 2]);
    }
    wait_for_copies_but<1>();
    __syncthreads();
    const int end = (tile + 1) * kTile;
    const bool at_edge =
        (!kWholeTiles && end > kColumns) || (kCausal && end > first + warp * 16 + 1);
    const unsigned char *k_tile = keys[tile % 2], *v_tile = values[tile % 2];
    if (!idle && (!kWholeTiles || kCausal) && at_edge) {
      add_tile<true>(k_tile, v_tile, queries, masks, tile * kTile, row, made);
    } else if (!idle) {
      add_tile<false>(k_tile, v_tile, queries, masks, tile * kTile, row, made);
    }
    __syncthreads();
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    made.total[h] += shuffle_xor(made.total[h], 1);
    made.total[h] += shuffle_xor(made.total[h], 2);
    const int r = row + h * 8;
    if (!kWholeRows && r >= kRows) continue;
    const float share = kMaskedRowZero && made.total[h] == 0 ? 0 : quick_reciprocal(made.total[h]);
#pragma unroll
    for (int n = 0; n < kValueDepth / 8; ++n) {
      const unsigned words[1] = {
          pack(made.sums[n][2 * h] * share, made.sums[n][2 * h + 1] * share)};
      store_words<4>(y + (r * kYRow + n * 8 + pair) * 2, words);
    }
  }
}
