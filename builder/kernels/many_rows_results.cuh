// Results of many_rows.cuh: what a warp makes of sums, 16 rows and 64 columns at a time, and
// stores. finish() comes before this text.

// Two results at a place, as they are to be stored. Sums of the halves are 32 apart.
KILN_DEVICE unsigned finish_at(const Operands& operands, const float* sums, unsigned residual,
                               int row, int column) {
  // What is outside is not stored.
  if constexpr (kRows % kTileRows != 0) row = min(row, kRows - 1);
  if constexpr (kColumns % kResultColumns != 0) column = min(column, kColumns - 2);
  Elements elements[kHalves];
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    elements[half] = {sums[half * 32], sums[half * 32 + 1]};
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

  // Of 16 rows and 64 columns.
  KILN_DEVICE void load_residual(int buffer, int row, int column) const {
    arrive_expecting(barriers + buffer * 8, kPartBytes);
    load_box(parts + buffer * kPartBytes, residual_map, column, row, barriers + buffer * 8);
  }
  KILN_DEVICE static int row_of(int part, const Place& place) {
    return place.row + part / kPartsOfRow * 64;
  }
  KILN_DEVICE static int column_of(int part, const Place& place) {
    return place.column + part % kPartsOfRow * 64;
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
      finish_part(&sums[part / kPartsOfRow][part % kPartsOfRow * 32], buffer,
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
    make(sums, buffer, row, column);
    show_to_copies();
    __syncwarp();
    if (lane == 0) store_box(y_map, buffer, column, row);
  }
  // Results of 16 rows and 64 columns, from the sums of each half of them.
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
                      row + lane / 4 + i % 2 * 8, column + (two * 2 + i / 2) * 8 + lane % 4 * 2);
      }
      put_matrices(at, made);
    }
  }
};
