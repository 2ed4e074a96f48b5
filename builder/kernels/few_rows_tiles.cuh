// Tiles of few_rows.cuh: what a block multiplies, and its copies of w into shared memory.
//
// Constants come before this text; see few_rows_kernel.cc.

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
