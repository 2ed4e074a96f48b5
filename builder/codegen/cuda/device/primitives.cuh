// The few things that only a GPU can do. Tests replace this file to run generated kernels on the
// host.
#define KILN_DEVICE __device__ __forceinline__
#define KILN_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define KILN_SHARED __shared__

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

template <class T>
KILN_DEVICE T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, mask);
}
KILN_DEVICE bool shuffle_xor(bool x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, static_cast<int>(x), mask) != 0;
}

// kBytes between memory and 32-bit words; fewer than 4 bytes lie in a word's low end.
template <int kBytes>
KILN_DEVICE void load_words(const void* from, unsigned* words) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const uint4 four = static_cast<const uint4*>(from)[i];
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
template <int kBytes>
KILN_DEVICE void store_words(void* to, const unsigned* words) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      static_cast<uint4*>(to)[i] =
          uint4{words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
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
KILN_DEVICE void begin_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
