// Results of many_rows.cuh: what a warp makes of sums, 16 rows of 128 bytes at a time, and stores.
// finish() comes before this text.

// Two results at a place, as they are to be stored.
KILN_DEVICE auto finish_at(const Operands& operands, const float* sums, unsigned residual, int row,
                           int column) {
  // What is outside is not stored.
  if constexpr (kRows % kTileRows != 0) row = min(row, kRows - 1);
  if constexpr (kColumns % kResultColumns != 0) column = min(column, kColumns - 2);
  Elements elements[kHalves];
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    const float* two = sums + half * kResultColumns / 2;
    elements[half] = {two[0], two[1]};
  }
  return finish(operands, elements, residual, row, column);
}

// Of one warp; no warp waits for another.
struct Finisher {
  const Operands& operands;
  const TensorMap& residual_map;
  const TensorMap& y_map;
  unsigned parts, barriers;  // this warp's
  int lane;
  int taken = 0;  // parts of tiles before

  KILN_DEVICE void load_residual(int buffer, int row, int column) const {
    arrive_expecting(barriers + buffer * 8, kPartBytes);
    load_box(parts + buffer * kPartBytes, residual_map, column, row, barriers + buffer * 8);
  }
  KILN_DEVICE static int row_of(int part, const Place& place) {
    return place.row + part / kPartsOfRow * 64;
  }
  KILN_DEVICE static int column_of(int part, const Place& place) {
    return place.column + part % kPartsOfRow * kPartColumns;
  }
  // The residual of the first parts is on its way while the tile is multiplied.
  KILN_DEVICE void begin(const Place& place) const {
    if (!kResidual || lane != 0) return;
    wait_for_reads_but<0>();
#pragma unroll
    for (int part = 0; part < kBuffers; ++part) {
      load_residual(part, row_of(part, place), column_of(part, place));
    }
  }
  KILN_DEVICE void run(const Sums& sums, const Place& place) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int buffer = part % kBuffers;
      finish_part(&sums[part / kPartsOfRow][part % kPartsOfRow * kPartColumns / 2], buffer,
                  (taken + part) / kBuffers & 1, row_of(part, place), column_of(part, place));
      if (!kResidual || lane != 0 || part + kBuffers >= kParts) continue;
      wait_for_reads_but<0>();
      load_residual(buffer, row_of(part + kBuffers, place), column_of(part + kBuffers, place));
    }
    taken += kParts;
  }
  KILN_DEVICE void finish_part(const float* sums, int number, unsigned parity, int row,
                               int column) const {
    const unsigned buffer = parts + number * kPartBytes;
    if (kResidual) {
      wait_for_phase(barriers + number * 8, parity);
    } else {
      if (lane == 0) wait_for_reads_but<kBuffers - 1>();
      __syncwarp();
    }
    if constexpr (kResultBytes == 2)
      make(sums, buffer, row, column);
    else
      make_by_pairs(sums, buffer, row, column);
    show_to_copies();
    __syncwarp();
    if (lane == 0) store_box(y_map, buffer, column, row);
  }
  // Results of 16 bits, from the sums of each half of them.
  KILN_DEVICE void make(const float* sums, unsigned buffer, int row, int column) const {
#pragma unroll
    for (int two = 0; two < 4; ++two) {  // groups of 8 columns
      const unsigned at = buffer + lane % 16 * 128 + (((two * 2 + lane / 16) ^ (lane & 7)) << 4);
      unsigned residual[4] = {}, made[4];
      if (kResidual) take_matrices(residual, at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // rows 0 and 8 of the first group, then of the second
        made[i] =
            finish_at(operands, sums + (two * 2 + i / 2) * 4 + i % 2 * 2, residual[i],
                      row + lane / 4 + i % 2 * 8, column + (two * 2 + i / 2) * 8 + lane % 4 * 2)
                .words[0];
      }
      put_matrices(at, made);
    }
  }
  // Of another size.
  KILN_DEVICE void make_by_pairs(const float* sums, unsigned buffer, int row, int column) const {
#pragma unroll
    for (int group = 0; group < kPartColumns / 8; ++group) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int down = lane / 4 + i * 8, across = group * 8 + lane % 4 * 2;
        const int byte = across * kResultBytes;
        put_in_shared(
            buffer + down * 128 + (((byte >> 4) ^ (down & 7)) << 4 | (byte & 15)),
            finish_at(operands, sums + group * 4 + i * 2, 0, row + down, column + across));
      }
    }
  }
};
