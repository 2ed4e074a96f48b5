// softmax(scale q k' + mask) v in one kernel, for f16 and bf16: a warp holds 16 rows of q and of
// the result in registers and passes over tiles of k and v in shared memory, with the softmax
// corrected as its maximum grows. Dao, FlashAttention-2 (2023); Milakov and Gimelshein, Online
// normalizer calculation for softmax (2018).
//
// Constants come before this text; see attention_kernel.cc. Powers are of 2, so scores are scaled
// by log2(e) too.

constexpr int kThreads = kWarps * 32;
constexpr int kBlockRows = kWarps * 16;
constexpr int kRowTiles = (kRows + kBlockRows - 1) / kBlockRows;
// 16 bytes between the rows of a tile let 8 rows be read without two on one bank.
constexpr int kKeyPitch = kDepth * 2 + 16, kValuePitch = kValueDepth * 2 + 16;
KILN_DEVICE float minus_infinity() { return float_of(0xFF800000u); }
// Below every score that counts: a row of nothing but masked scores weighs all the same, as with
// the large negative numbers that models mask with. With kMaskedRowZero a mask's -inf stays, and
// a row of those has no weight.
constexpr float kLeastScore = -30000.0f * 1.44269504f;

KILN_DEVICE unsigned pack(float low, float high) {
  return kF16 ? pack_f16(low, high) : pack_bf16(low, high);
}

// kTile rows of `depth` elements from row `first` on; zeros past the end.
template <int kWidth, int kPitch>
KILN_DEVICE void load_tile(unsigned char* tile, const char* from, int first, long long stride) {
  constexpr int kPieces = kWidth / 8;
  for (int i = threadIdx.x; i < kTile * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces;
    const bool there = first + row < kColumns;
    const long long at = there ? (first + row) * stride + piece * 8 : 0;
    copy_async(tile + row * kPitch + piece * 16, from + at * 2, there);
  }
}

KILN_DEVICE float mask_at(const char* mask, long long at) {
  unsigned bits[1];
  if (kMaskBytes == 4) {
    load_words<4>(mask + at * 4, bits);
    return float_of(bits[0]);
  }
  load_words<2>(mask + at * 2, bits);
  return kF16 ? float_of_f16(bits[0]) : float_of(bits[0] << 16);
}

// The score of a row and a column, as a power of 2.
KILN_DEVICE float score_of(float product, int row, int column, const char* mask) {
  float score = product * kScale;
  if (kMaskBytes > 0 && row < kRows && column < kColumns) {
    const float added = mask_at(mask, row * kMaskRow + column * kMaskColumn);
    const bool hidden = kMaskedRowZero && added == minus_infinity();
    score = max_or_nan(score + added * 1.44269504f, hidden ? minus_infinity() : kLeastScore);
  }
  const bool outside = column >= kColumns || (kCausal && column > row);
  return outside ? minus_infinity() : score;
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
  if (kMaskBytes > 0) mask += (kMaskOffset + batch * kMaskBatch + head * kMaskHead) * kMaskBytes;

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
      if (r < kRows) {
        load_words<4>(q + (r * kQRow + step * 16 + i / 2 * 8 + pair) * 2, &queries[step][i]);
      }
    }
  }

  float sums[kValueDepth / 8][4] = {};
  float most[2] = {minus_infinity(), minus_infinity()}, total[2] = {0, 0};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      load_tile<kDepth, kKeyPitch>(keys[(tile + 1) % 2], k, (tile + 1) * kTile, kKRow);
      load_tile<kValueDepth, kValuePitch>(values[(tile + 1) % 2], v, (tile + 1) * kTile, kVRow);
    }
    close_copies();
    wait_for_copies_but<1>();
    __syncthreads();

    float scores[kTile / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
#pragma unroll
      for (int n = 0; n < kTile / 16; ++n) {
        unsigned b[4];
        load_matrices(b, keys[tile % 2] + (n * 16 + lane / 16 * 8 + lane % 8) * kKeyPitch +
                             step * 32 + lane / 8 % 2 * 16);
        multiply_accumulate<kF16>(scores[2 * n], queries[step], b[0], b[1]);
        multiply_accumulate<kF16>(scores[2 * n + 1], queries[step], b[2], b[3]);
      }
    }

    float tops[2] = {most[0], most[1]};
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = tile * kTile + n * 8 + pair + i % 2;
        scores[n][i] = score_of(scores[n][i], row + i / 2 * 8, column, mask);
        tops[i / 2] = max_or_nan(tops[i / 2], scores[n][i]);
      }
    }
    float bases[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      tops[h] = max_or_nan(tops[h], shuffle_xor(tops[h], 1));
      tops[h] = max_or_nan(tops[h], shuffle_xor(tops[h], 2));
      bases[h] = tops[h] == minus_infinity() ? 0 : tops[h];
      const float fade = quick_power_of_2(most[h] - bases[h]);
      most[h] = tops[h];
      total[h] *= fade;
#pragma unroll
      for (int n = 0; n < kValueDepth / 8; ++n) {
        sums[n][2 * h] *= fade;
        sums[n][2 * h + 1] *= fade;
      }
    }

#pragma unroll
    for (int step = 0; step < kTile / 16; ++step) {
      unsigned weights[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int n = 2 * step + part / 2, h = part % 2;
        const float low = quick_power_of_2(scores[n][2 * h] - bases[h]);
        const float high = quick_power_of_2(scores[n][2 * h + 1] - bases[h]);
        total[h] += low + high;
        weights[part] = pack(low, high);
      }
#pragma unroll
      for (int n = 0; n < kValueDepth / 16; ++n) {
        unsigned b[4];
        load_matrices_transposed(b, values[tile % 2] +
                                        (step * 16 + lane / 8 % 2 * 8 + lane % 8) * kValuePitch +
                                        n * 32 + lane / 16 * 16);
        multiply_accumulate<kF16>(sums[2 * n], weights, b[0], b[1]);
        multiply_accumulate<kF16>(sums[2 * n + 1], weights, b[2], b[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    total[h] += shuffle_xor(total[h], 1);
    total[h] += shuffle_xor(total[h], 2);
    const int r = row + h * 8;
    if (r >= kRows) continue;
    const float share = kMaskedRowZero && total[h] == 0 ? 0 : 1 / total[h];
#pragma unroll
    for (int n = 0; n < kValueDepth / 8; ++n) {
      const unsigned words[1] = {pack(sums[n][2 * h] * share, sums[n][2 * h + 1] * share)};
      store_words<4>(y + (r * kYRow + n * 8 + pair) * 2, words);
    }
  }
}
