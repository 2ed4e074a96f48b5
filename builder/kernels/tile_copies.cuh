// What kernels of tiles in shared memory need of compute capability 9.0: barriers in shared memory,
// bulk copies by tensor maps, and products of what these copies brought. Addresses are those of
// shared memory.

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

// A barrier completes a phase when all arrivals and all bytes that it expects have come. Phases
// have by turns parity 0 and 1; the one before the first has parity 1.
KILN_DEVICE void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// To be called by who made barriers, before others of the cluster or copies see them.
KILN_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
KILN_DEVICE void arrive_expecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
KILN_DEVICE void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the same barrier of a block of the cluster. Without release, which would be a fence of all
// memory: what the barrier guards was read by instructions that have completed.
KILN_DEVICE void arrive_in_cluster(unsigned barrier, unsigned block) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
      "r"(block)
      : "memory");
}
KILN_DEVICE void wait_for_phase(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

KILN_DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// The box of the map that begins at a column and a row. Its bytes arrive at the barrier.
KILN_DEVICE void load_box(unsigned to, const TensorMap& map, int column, int row,
                          unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// The same into every block of the cluster whose bit is set, and for the barrier of each.
KILN_DEVICE void load_box_for(unsigned blocks, unsigned to, const TensorMap& map, int column,
                              int row, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(static_cast<unsigned short>(blocks))
      : "memory");
}
// A group of its own. What is outside of the map is left out.
KILN_DEVICE void store_box(const TensorMap& map, unsigned from, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(column), "r"(row), "r"(from)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// This thread's stores but for the latest few have read shared memory.
template <int kGroups>
KILN_DEVICE void wait_for_reads_but() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
KILN_DEVICE void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// What this thread wrote into shared memory is seen by bulk copies.
KILN_DEVICE void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Products of matrices that lie in shared memory as boxes with rows of 128 bytes, at multiples of
// 1024 bytes. 2 more: 32 bytes further along the rows; 64 more: 8 rows further.
KILN_DEVICE unsigned long long matrix_at(unsigned address) {
  const unsigned long long at = (address & 0x3FFFF) >> 4, eight_rows = 1024 >> 4, swizzle_128 = 1;
  return at | 1ull << 16 | eight_rows << 32 | swizzle_128 << 62;
}
KILN_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KILN_DEVICE void close_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroups>
KILN_DEVICE void wait_for_products_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

// Registers of each thread of a warpgroup, from now on.
template <int kCount>
KILN_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
KILN_DEVICE void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
// Named barriers of `kThreads` threads, some of which wait and some of which only arrive.
template <int kThreads>
KILN_DEVICE void wait_for_turn(int name) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "n"(kThreads) : "memory");
}
template <int kThreads>
KILN_DEVICE void give_turn(int name) {
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "n"(kThreads) : "memory");
}
// Where a block of the cluster has what this one has at `address`.
KILN_DEVICE unsigned in_cluster(unsigned address, unsigned block) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
// 16 bytes, to what in_cluster() gave, and from this block's.
KILN_DEVICE void store_in_cluster(unsigned to, const float* four) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(four[0]),
               "f"(four[1]), "f"(four[2]), "f"(four[3])
               : "memory");
}
KILN_DEVICE void load_four(float (&four)[4], unsigned from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
               : "r"(from)
               : "memory");
}
// A pack of 2, 4 or 8 bytes.
template <class P>
KILN_DEVICE void put_in_shared(unsigned to, const P& pack) {
  if constexpr (P::kBytes == 2) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(to),
                 "h"(static_cast<unsigned short>(pack.words[0]))
                 : "memory");
  } else if constexpr (P::kBytes == 4) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pack.words[0]) : "memory");
  } else {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(pack.words[0]),
                 "r"(pack.words[1])
                 : "memory");
  }
}
KILN_DEVICE unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Four 8x8 matrices of 16-bit elements between registers and rows of 16 bytes, as load_matrices().
// Volatile keeps them in order among each other; show_to_copies() and barriers are their limits.
KILN_DEVICE void take_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
KILN_DEVICE void put_matrices(unsigned row, const unsigned (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]));
}
