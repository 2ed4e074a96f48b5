// Stands in for device/primitives.cuh: generated kernels as host C++. The threads of a block run as
// fibers in turn, one step from barrier to barrier; each access to memory is checked.
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define KILN_DEVICE inline
#define KILN_KERNEL(...) static void
#define KILN_CLUSTER_KERNEL(threads, blocks) static void
#define KILN_SHARED static
// Each block of a cluster has its own.
#define KILN_SHARED_OF_LAUNCH(Type, name)                    \
  static Type name##_of_blocks[kMostOfCluster];              \
  launch_shared = reinterpret_cast<char*>(name##_of_blocks); \
  launch_shared_bytes = sizeof(Type);                        \
  Type& name = name##_of_blocks[this_block()]
#define __cluster_dims__(...)

namespace {

struct Index {
  unsigned x = 0;
};
Index threadIdx, blockIdx;

struct Memory {
  const char* first;
  size_t bytes;
  bool writable;
};

// --- what goes wrong is told to the caller, once ---

std::vector<Memory> memories;
std::string fault;

void fail(const std::string& what) {
  if (fault.empty()) {
    fault = what + " in block " + std::to_string(blockIdx.x) + ", thread " +
            std::to_string(threadIdx.x);
  }
}

bool may_touch(const void* at, size_t bytes, bool write) {
  const char* p = static_cast<const char*>(at);
  if (reinterpret_cast<uintptr_t>(at) % (bytes > 16 ? 16 : bytes) != 0) {
    fail("access of " + std::to_string(bytes) + " bytes off their boundary");
  }
  for (const Memory& m : memories) {
    if (p < m.first || p + bytes > m.first + m.bytes) continue;
    if (!write || m.writable) return true;
    fail("write to an input");
    return false;
  }
  fail(write ? "write outside of all buffers" : "read outside of all buffers");
  return false;
}

// --- fibers ---

enum class Stop : uint8_t { kNone, kBarrier, kShuffle, kEnd };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  Stop stop = Stop::kNone;
  unsigned shuffles = 0;
  uint64_t slots[2];  // what it offers, by turns, to the threads that shuffle with it
};

std::vector<Fiber> fibers;
ucontext_t scheduler;
const std::function<void()>* kernel_body = nullptr;
bool with_fibers = false;
constexpr size_t kStackBytes = 128 << 10;

// The blocks of a cluster run together, as the threads of one block: what is shared is shared by
// all of them.
unsigned first_of_block = 0, threads_of_block = 1;
constexpr unsigned kMostOfCluster = 16;
char* launch_shared = nullptr;
size_t launch_shared_bytes = 0;

unsigned this_block() { return first_of_block / threads_of_block; }  // of its cluster

Fiber& this_fiber() { return fibers[first_of_block + threadIdx.x]; }

void pause(Stop why) {
  if (!with_fibers) return fail("a barrier in a kernel that was said to have none");
  Fiber& self = this_fiber();
  self.stop = why;
  swapcontext(&self.context, &scheduler);
}

void run_fiber() {
  (*kernel_body)();
  this_fiber().stop = Stop::kEnd;
}

void start_fiber(Fiber& fiber) {
  if (fiber.stack == nullptr) fiber.stack.reset(new char[kStackBytes]);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
  fiber.stop = Stop::kNone;
  fiber.shuffles = 0;
}

// Threads stop together: those of a warp for shuffles, all at barriers.
bool agree(unsigned first, unsigned count) {
  for (unsigned t = 1; t < count; ++t) {
    if (fibers[first + t].stop != fibers[first].stop) return false;
  }
  return true;
}

// Runs a fiber on, unless it waits for other warps.
bool resume(unsigned fiber, unsigned first_block, unsigned in_block) {
  const Stop stop = fibers[fiber].stop;
  if (stop == Stop::kBarrier || stop == Stop::kEnd) return false;
  threadIdx.x = fiber % in_block;
  blockIdx.x = first_block + fiber / in_block;
  first_of_block = fiber - threadIdx.x;
  swapcontext(&scheduler, &fibers[fiber].context);
  return true;
}

// Every other round runs backwards, so that an order that no barrier asks for is not relied on.
void run_cluster_of_fibers(unsigned first_block, unsigned cluster, unsigned in_block) {
  const unsigned threads = cluster * in_block;
  if (fibers.size() < threads) fibers.resize(threads);
  for (unsigned t = 0; t < threads; ++t) start_fiber(fibers[t]);
  for (bool backwards = false; fault.empty(); backwards = !backwards) {
    bool ran = false;
    for (unsigned i = 0; i < threads; ++i) {
      ran |= resume(backwards ? threads - 1 - i : i, first_block, in_block);
    }
    const unsigned in_warp = in_block < 32 ? in_block : 32;
    for (unsigned t = 0; t < threads; t += in_warp) {
      if (!agree(t, in_warp)) fail("threads of a warp wait at different places");
    }
    if (ran) continue;
    if (!agree(0, threads)) fail("threads wait at different barriers");
    if (fibers[0].stop == Stop::kEnd) return;
    for (unsigned t = 0; t < threads; ++t) fibers[t].stop = Stop::kNone;
  }
}

void run_grid(uint64_t blocks, unsigned threads, unsigned cluster, bool barriers,
              const std::function<void()>& body) {
  kernel_body = &body;
  with_fibers = barriers;
  threads_of_block = threads;
  if (cluster > kMostOfCluster) return fail("a cluster of too many blocks");
  if (blocks % cluster != 0) fail("a cluster is not whole");
  for (uint64_t b = 0; b < blocks && fault.empty(); b += cluster) {
    blockIdx.x = static_cast<unsigned>(b);
    first_of_block = 0;
    if (barriers) {
      run_cluster_of_fibers(blockIdx.x, cluster, threads);
      continue;
    }
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
  }
}

}  // namespace

static inline void __syncthreads() { pause(Stop::kBarrier); }

template <class T>
static inline T shuffle_xor(T x, int mask) {
  Fiber& self = this_fiber();
  const unsigned turn = self.shuffles++ % 2;
  std::memcpy(&self.slots[turn], &x, sizeof x);
  pause(Stop::kShuffle);
  if (!with_fibers) return x;
  T other;
  std::memcpy(&other,
              &fibers[first_of_block + (threadIdx.x ^ static_cast<unsigned>(mask))].slots[turn],
              sizeof x);
  return other;
}

static inline float float_of(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
static inline unsigned bits_of(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
static inline double double_of(unsigned long long bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
static inline unsigned long long bits_of(double x) {
  unsigned long long bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

static inline float float_of_f16(unsigned bits) {
  const unsigned short narrow = static_cast<unsigned short>(bits);
  _Float16 x;
  std::memcpy(&x, &narrow, sizeof x);
  return static_cast<float>(x);
}
static inline unsigned f16_of(float x) {
  const _Float16 narrow = static_cast<_Float16>(x);
  unsigned short bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}
static inline unsigned bf16_of(float x) {
  const unsigned bits = bits_of(x);
  if (x != x) return bits >> 16 | 0x40;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

static inline float float_of_e4m3(unsigned bits) {
  const unsigned exponent = bits >> 3 & 0xF, mantissa = bits & 7;
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                    : std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  return (bits & 0x7F) == 0x7F ? NAN : bits & 0x80 ? -size : size;
}

static constexpr bool kConvertsToE4m3 = true;
// The nearest of all codes, of two the even one.
static inline unsigned e4m3_of(float x) {
  if (x != x) return 0x7F;
  const double size = std::fabs(static_cast<double>(x));
  unsigned best = 0;
  for (unsigned code = 1; code <= 0x7E; ++code) {
    const double there = std::fabs(size - float_of_e4m3(code));
    const double before = std::fabs(size - float_of_e4m3(best));
    if (there < before || (there == before && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? 0x80u : 0u);
}

static inline float quick_reciprocal(float x) { return std::fabs(x) > 0x1p126f ? 0 : 1 / x; }
static inline float min_or_nan(float a, float b) { return a < b || a != a ? a : b; }
static inline float max_or_nan(float a, float b) { return a > b || a != a ? a : b; }
static inline float saturate(float x) { return x >= 1 ? 1 : x >= 0 ? x : 0; }

template <int kBytes, bool kOnce = false>
static inline void load_words(const void* from, unsigned* words) {
  if (may_touch(from, kBytes, false)) std::memcpy(words, from, kBytes);
}
template <int kBytes, bool kOnce = false>
static inline void store_words(void* to, const unsigned* words) {
  if (may_touch(to, kBytes, true)) std::memcpy(to, words, kBytes);
}
template <class Index>
static inline void store_half_byte(void* buffer, Index at, unsigned bits) {
  unsigned char* byte = static_cast<unsigned char*>(buffer) + at / 2;
  if (!may_touch(byte, 1, true)) return;
  const int shift = static_cast<int>(at % 2) * 4;
  *byte = static_cast<unsigned char>((*byte & ~(0xF << shift)) | (bits << shift));
}
template <int kCount>
static inline void forget(unsigned (&)[kCount]) {}
static inline void let_next_kernel_start() {}
static inline void wait_for_earlier_kernels() {}
static inline void begin_kernel() {}

static inline void arrive_at_cluster() {}
static inline void wait_for_cluster() { pause(Stop::kBarrier); }
template <class T>
static inline void write_in_cluster(T* slot, unsigned block, T value) {
  char* at = reinterpret_cast<char*>(slot);
  const bool of_launch = launch_shared != nullptr && at >= launch_shared &&
                         at < launch_shared + kMostOfCluster * launch_shared_bytes;
  if (of_launch)
    at += (block - static_cast<ptrdiff_t>(this_block())) *
          static_cast<ptrdiff_t>(launch_shared_bytes);
  *reinterpret_cast<T*>(at) = value;
}

static inline float quick_power_of_2(float x) { return std::exp2(x); }

static inline unsigned pack_f16(float low, float high) { return f16_of(low) | f16_of(high) << 16; }
static inline unsigned pack_bf16(float low, float high) {
  return bf16_of(low) | bf16_of(high) << 16;
}

static inline void copy_async(void* shared, const void* from, bool there) {
  if (reinterpret_cast<uintptr_t>(shared) % 16 != 0) fail("a copy to shared memory off 16 bytes");
  std::memset(shared, 0, 16);
  if (there && may_touch(from, 16, false)) std::memcpy(shared, from, 16);
}
static inline void copy_async_of_line(void* shared, const void* from, bool there) {
  copy_async(shared, from, there);
}
static inline unsigned long long leaves_first() { return 0; }
static inline void copy_async_of_line(void* shared, const void* from, bool there,
                                      unsigned long long) {
  copy_async(shared, from, there);
}
static inline void fetch_into_second_cache(const void* from, unsigned bytes) {
  if (bytes % 16 != 0) fail("a fetch of " + std::to_string(bytes) + " bytes");
  for (unsigned at = 0; at < bytes; at += 16)
    may_touch(static_cast<const char*>(from) + at, 16, false);
}
static inline void close_copies() {}
template <int kGroups>
static inline void wait_for_copies_but() {}

// What each lane of the warp offers.
template <class T>
static inline void gather_warp(T x, T (&all)[32]) {
  Fiber& self = this_fiber();
  const unsigned turn = self.shuffles++ % 2;
  std::memcpy(&self.slots[turn], &x, sizeof x);
  pause(Stop::kShuffle);
  const unsigned first = first_of_block + threadIdx.x / 32 * 32;
  for (unsigned i = 0; i < 32; ++i) {
    std::memcpy(&all[i], &fibers[first + i].slots[turn], sizeof x);
  }
}

template <bool kTransposed>
static inline void load_four(unsigned (&m)[4], const void* row) {
  const uint16_t* rows[32];
  gather_warp(static_cast<const uint16_t*>(row), rows);
  const unsigned lane = threadIdx.x % 32, a = lane / 4, b = lane % 4 * 2;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned low = kTransposed ? rows[8 * i + b][a] : rows[8 * i + a][b];
    const unsigned high = kTransposed ? rows[8 * i + b + 1][a] : rows[8 * i + a][b + 1];
    m[i] = low | high << 16;
  }
}
static inline void load_matrices(unsigned (&m)[4], const void* row) { load_four<false>(m, row); }
static inline void load_matrices_transposed(unsigned (&m)[4], const void* row) {
  load_four<true>(m, row);
}

static inline void halves_of_e4m3(unsigned four, unsigned& low, unsigned& high) {
  const auto half = [&](unsigned at) { return f16_of(float_of_e4m3(four >> (8 * at) & 0xFF)); };
  low = half(0) | half(1) << 16;
  high = half(2) | half(3) << 16;
}

// By PTX's description of the fragments of mma.m16n8k16.
template <bool kF16>
static inline void multiply_accumulate(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                       unsigned b1) {
  const auto pair = [](unsigned low, unsigned high) { return low | uint64_t{high} << 32; };
  uint64_t a01[32], a23[32], b01[32];
  gather_warp(pair(a[0], a[1]), a01);
  gather_warp(pair(a[2], a[3]), a23);
  gather_warp(pair(b0, b1), b01);
  const auto half = [](uint64_t words, unsigned at) {
    const unsigned bits = static_cast<unsigned>(words >> (16 * at)) & 0xFFFF;
    return kF16 ? float_of_f16(bits) : float_of(bits << 16);
  };
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned from = row % 8 * 4 + k % 8 / 2;
      const float left = half((k < 8 ? a01 : a23)[from], row / 8 * 2 + k % 2);
      const float right = half(b01[column * 4 + k % 8 / 2], k / 8 * 2 + k % 2);
      c[i] += left * right;
    }
  }
}
