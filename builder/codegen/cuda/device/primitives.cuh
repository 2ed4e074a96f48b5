// The few things that only a GPU can do. Tests replace this file to run generated kernels on the
// host.
#define KILN_DEVICE __device__ __forceinline__
// Threads of a block and, where it matters, blocks that a multiprocessor is to hold.
#define KILN_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#define KILN_CLUSTER_KERNEL(threads, blocks) \
  extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads)
#define KILN_SHARED __shared__
// `name`: the shared memory that the launch asks for, of which it says how much.
#define KILN_SHARED_OF_LAUNCH(Type, name)                                \
  extern __shared__ __align__(16) unsigned char kiln_shared_of_launch[]; \
  Type& name = *reinterpret_cast<Type*>(kiln_shared_of_launch)

KILN_DEVICE float float_of(unsigned bits) { return __uint_as_float(bits); }
KILN_DEVICE unsigned bits_of(float x) { return __float_as_uint(x); }
KILN_DEVICE double double_of(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
KILN_DEVICE unsigned long long bits_of(double x) {
  return static_cast<unsigned long long>(__double_as_longlong(x));
}

KILN_DEVICE float float_of_f16(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<unsigned short>(bits)));
  return x;
}
KILN_DEVICE unsigned f16_of(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
KILN_DEVICE unsigned bf16_of(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// To f8e4m3fn; beyond its largest number that one.
#if __CUDA_ARCH__ >= 890
constexpr bool kConvertsToE4m3 = true;
KILN_DEVICE unsigned e4m3_of(float x) {
  unsigned short bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return bits;
}
#else
constexpr bool kConvertsToE4m3 = false;
KILN_DEVICE unsigned e4m3_of(float) { return 0; }
#endif

// 1 / x within one unit in the last place, for 2^-126 <= |x| <= 2^126; beyond that it is 0.
KILN_DEVICE float quick_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KILN_DEVICE float min_or_nan(float a, float b) {
  float x;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
KILN_DEVICE float max_or_nan(float a, float b) {
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}

// Between 0 and 1; 0 for NaN.
KILN_DEVICE float saturate(float x) { return __saturatef(x); }

template <class T>
KILN_DEVICE T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, mask);
}
KILN_DEVICE bool shuffle_xor(bool x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, static_cast<int>(x), mask) != 0;
}

// Reads pass the first cache by, writes are the first to leave the second one. Volatile: not before
// begin_kernel().
KILN_DEVICE uint4 load_four_once(const uint4* from) {
  uint4 four;
  asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
               : "l"(__cvta_generic_to_global(from)));
  return four;
}
KILN_DEVICE void store_four_once(uint4* to, uint4 four) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(four.x), "r"(four.y), "r"(four.z), "r"(four.w)
               : "memory");
}

// kBytes between memory and 32-bit words; fewer than 4 bytes lie in a word's low end. `kOnce`:
// nothing else touches them, which matters from 16 bytes on.
template <int kBytes, bool kOnce = false>
KILN_DEVICE void load_words(const void* from, unsigned* words) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const uint4* at = static_cast<const uint4*>(from) + i;
      const uint4 four = kOnce ? load_four_once(at) : *at;
      words[4 * i] = four.x;
      words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z;
      words[4 * i + 3] = four.w;
    }
  } else if constexpr (kBytes == 8) {
    const uint2 two = *static_cast<const uint2*>(from);
    words[0] = two.x;
    words[1] = two.y;
  } else if constexpr (kBytes == 4) {
    words[0] = *static_cast<const unsigned*>(from);
  } else if constexpr (kBytes == 2) {
    words[0] = *static_cast<const unsigned short*>(from);
  } else {
    words[0] = *static_cast<const unsigned char*>(from);
  }
}
template <int kBytes, bool kOnce = false>
KILN_DEVICE void store_words(void* to, const unsigned* words) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      uint4* at = static_cast<uint4*>(to) + i;
      const uint4 four{words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
      if constexpr (kOnce)
        store_four_once(at, four);
      else
        *at = four;
    }
  } else if constexpr (kBytes == 8) {
    *static_cast<uint2*>(to) = uint2{words[0], words[1]};
  } else if constexpr (kBytes == 4) {
    *static_cast<unsigned*>(to) = words[0];
  } else if constexpr (kBytes == 2) {
    *static_cast<unsigned short*>(to) = static_cast<unsigned short>(words[0]);
  } else {
    *static_cast<unsigned char*>(to) = static_cast<unsigned char>(words[0]);
  }
}

// Two elements share a byte, and another thread may be writing the other one.
// REQUIRES: whole words of the buffer may be touched.
template <class Index>
KILN_DEVICE void store_half_byte(void* buffer, Index at, unsigned bits) {
  unsigned* word = static_cast<unsigned*>(buffer) + at / 8;
  const int shift = static_cast<int>(at % 8) * 4;
  atomicAnd(word, ~(0xFu << shift));
  atomicOr(word, bits << shift);
}

// Keeps the compiler from holding on to values computed from these words; it computes them again.
template <int kCount>
KILN_DEVICE void forget(unsigned (&words)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(words[i]));
}

// Under programmatic dependent launch the next kernel may start to be scheduled, and nothing of
// the earlier ones may be touched before they have finished. No buffer is __restrict__: such loads
// could be moved up across this.
KILN_DEVICE void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
KILN_DEVICE void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
KILN_DEVICE void begin_kernel() {
  let_next_kernel_start();
  wait_for_earlier_kernels();
}

// A barrier of all threads of a cluster's blocks, in two halves, by turns. What was written before
// the first is seen after the second.
KILN_DEVICE void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
KILN_DEVICE void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Writes into the shared memory of another block of the cluster, where `slot` is in this one's.
template <class T>
KILN_DEVICE void write_in_cluster(T* slot, unsigned block, T value) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(slot), "r"(block));
  *there = value;
}

// 2 ^ x within two units in the last place; results below 2^-126 are 0.
KILN_DEVICE float quick_power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// --- tensor cores, fed through shared memory ---

KILN_DEVICE unsigned pack_f16(float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
KILN_DEVICE unsigned pack_bf16(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// Four f8e4m3fn as f16, two in a word.
KILN_DEVICE void halves_of_e4m3(unsigned four, unsigned& low, unsigned& high) {
#if __CUDA_ARCH__ >= 890
  asm("{.reg .b16 first, second; mov.b32 {first, second}, %2; cvt.rn.f16x2.e4m3x2 %0, first; "
      "cvt.rn.f16x2.e4m3x2 %1, second;}"
      : "=r"(low), "=r"(high)
      : "r"(four));
#endif
}

KILN_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
// 16 bytes into shared memory, zeros unless `there`; both ends on 16-byte boundaries. Copies that
// were started are closed as one group.
KILN_DEVICE void copy_async(void* shared, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
// The same for what is read along with its neighbours: whole lines of 128 bytes come from memory.
KILN_DEVICE void copy_async_of_line(void* shared, const void* from, bool there) {
  asm volatile(
      "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}
// The same for what is read once: it is the first to leave the second cache. `policy` from
// leaves_first().
KILN_DEVICE unsigned long long leaves_first() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
KILN_DEVICE void copy_async_of_line(void* shared, const void* from, bool there,
                                    unsigned long long policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(
                   shared_address(shared)),
               "l"(from), "r"(there ? 16 : 0), "l"(policy)
               : "memory");
}
// Into the second cache alone; a multiple of 16 bytes from a 16-byte boundary.
KILN_DEVICE void fetch_into_second_cache(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
#endif
}
KILN_DEVICE void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// This thread's copies of all groups but the latest few have arrived.
template <int kGroups>
KILN_DEVICE void wait_for_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// Four 8x8 matrices of 16-bit elements: lane i names row i % 8 of matrix i / 8, and gets the two
// elements of each matrix at row i / 4 and columns 2 (i % 4) and the next.
KILN_DEVICE void load_matrices(unsigned (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}
// The same of the matrices transposed.
KILN_DEVICE void load_matrices_transposed(unsigned (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// c += a b for 16x16 times 16x8, as mma.m16n8k16 lays them over a warp.
template <bool kF16>
KILN_DEVICE void multiply_accumulate(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                     unsigned b1) {
  if constexpr (kF16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}
