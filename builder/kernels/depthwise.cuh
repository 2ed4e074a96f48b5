// A convolution of each channel by itself, channels last. A thread takes 8 channels of a patch of
// results: kRun of a row in kBand rows. It goes down the lines of the input that the patch reads,
// holds what it needs of a line in registers, and adds it to all sums that it is a part of. Lines
// are shared between threads through the first cache. Sums are added line by line, left to right.
//
// Constants come before this text, the type Element of x and w, and finish(), which makes the
// results of 8 elements of the convolution; see depthwise_kernel.cc.

constexpr int kVector = 8;  // channels; 16 bytes
constexpr int kGroups = kChannels / kVector;
constexpr int kRuns = (kOutWidth + kRun - 1) / kRun;
constexpr int kBands = (kOutHeight + kBand - 1) / kBand;
constexpr int kWork = kBatch * kBands * kRuns * kGroups;
constexpr int kCells = (kRun - 1) * kStrideX + kWindowX;
constexpr int kLines = (kBand - 1) * kStrideY + kWindowY;
// Few lines are loaded all at once: a thread then waits for memory once.
constexpr bool kAtOnce = kLines * kCells <= 25;

using Piece = Pack<Element, kVector>;

// What the patch that begins at column `first` reads of a line of the input; zeros unless the line
// is there.
KILN_DEVICE void load_line(const char* x, bool line_there, int line_at, int first,
                           Piece (&cells)[kCells]) {
#pragma unroll
  for (int cell = 0; cell < kCells; ++cell) {
    const int column = first + cell;
    const bool there = line_there && column >= 0 && column < kWidth;
    cells[cell] = there ? load<Element, kVector>(x, line_at + column * kChannels) : Piece{};
  }
}

KILN_DEVICE void add_line(const Piece (&cells)[kCells], const char* w, int channel, int window_row,
                          Elements (&sums)[kRun]) {
#pragma unroll
  for (int column = 0; column < kWindowX; ++column) {
    const auto weights =
        load<Element, kVector>(w, (window_row * kWindowX + column) * kChannels + channel);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        float& sum = sums[i].of[v];
        sum = fmaf(get(cells[i * kStrideX + column], v), get(weights, v), sum);
      }
    }
  }
}

KILN_DEVICE void depthwise(const char* x, const char* w, const Operands& operands) {
  begin_kernel();
  const int work = blockIdx.x * kThreads + threadIdx.x;
  if (work >= kWork) return;
  const int channel = work % kGroups * kVector;
  const int out_x = work / kGroups % kRuns * kRun;
  const int out_y = work / (kGroups * kRuns) % kBands * kBand;
  const int image = work / (kGroups * kRuns * kBands);

  const int first_y = out_y * kStrideY - kPadY, first_x = out_x * kStrideX - kPadX;
  const int image_at = image * kHeight * kWidth * kChannels + channel;
  const auto is_there = [&](int line) { return first_y + line >= 0 && first_y + line < kHeight; };
  const auto load_at = [&](int line, Piece(&cells)[kCells]) {
    load_line(x, is_there(line), image_at + (first_y + line) * kWidth * kChannels, first_x, cells);
  };
  Elements sums[kBand][kRun] = {};
  const auto add = [&](int line, const Piece(&cells)[kCells]) {
#pragma unroll
    for (int row = 0; row < kBand; ++row) {
      const int window_row = line - row * kStrideY;
      if (window_row < 0 || window_row >= kWindowY) continue;
      add_line(cells, w, channel, window_row, sums[row]);
    }
  };
  if constexpr (kAtOnce) {
    Piece cells[kLines][kCells];
#pragma unroll
    for (int line = 0; line < kLines; ++line) load_at(line, cells[line]);
#pragma unroll
    for (int line = 0; line < kLines; ++line) add(line, cells[line]);
  } else {
#pragma unroll 1
    for (int line = 0; line < kLines; ++line) {
      if (!is_there(line)) continue;
      Piece cells[kCells];
      load_at(line, cells);
      add(line, cells);
    }
  }
#pragma unroll
  for (int row = 0; row < kBand; ++row) {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (out_y + row >= kOutHeight || out_x + i >= kOutWidth) continue;
      const int at = ((image * kOutHeight + out_y + row) * kOutWidth + out_x + i) * kChannels;
      finish(operands, sums[row][i], at + channel);
    }
  }
}
