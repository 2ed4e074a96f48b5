#include "engine/host/plain/gemm.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/host/number_dispatch.h"

namespace kiln::host {
namespace {

// Panels of a are kRows high, panels of b kColumns wide; both packed along k, padded with zeros.
constexpr int64_t kRows = 6, kColumns = 32;
constexpr int64_t kDepth = 256;         // k of one block: both panels stay in the first-level cache
constexpr int64_t kBlockRows = 96;      // packed a: 96 KiB
constexpr int64_t kBlockColumns = 512;  // packed b: 512 KiB

void pack_a(Matrix<const float> a, int64_t rows, int64_t depth, float* to) {
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t height = std::min(kRows, rows - i);
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t r = 0; r < kRows; ++r) {
        *to++ = r < height ? a.data[(i + r) * a.row + p * a.column] : 0.0F;
      }
    }
  }
}

void pack_b(Matrix<const float> b, int64_t depth, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; j += kColumns) {
    const int64_t width = std::min(kColumns, columns - j);
    for (int64_t p = 0; p < depth; ++p, to += kColumns) {
      const float* from = b.data + p * b.row + j * b.column;
      if (b.column == 1)
        std::copy_n(from, width, to);
      else
        for (int64_t c = 0; c < width; ++c) to[c] = from[c * b.column];
      std::fill(to + width, to + kColumns, 0.0F);
    }
  }
}

// tile [kRows, kColumns] = panel of a times panel of b.
template <int kWidth>
[[gnu::always_inline]] inline void multiply(int64_t depth, const float* a, const float* b,
                                            float* tile) {
  typedef float Vector __attribute__((vector_size(kWidth * 4), aligned(4)));
  constexpr int kVectors = std::min<int>(kColumns / kWidth, kWidth == 16 ? 2 : 2);
  for (int64_t first = 0; first < kColumns; first += kVectors * kWidth) {
    Vector sums[kRows][kVectors] = {};
    for (int64_t p = 0; p < depth; ++p) {
      const float* row = b + p * kColumns + first;
      Vector right[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        right[v] = *reinterpret_cast<const Vector*>(row + v * kWidth);
      }
      for (int64_t r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sums[r][v] += a[p * kRows + r] * right[v];
      }
    }
    for (int64_t r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        *reinterpret_cast<Vector*>(tile + r * kColumns + first + v * kWidth) = sums[r][v];
      }
    }
  }
}

using MultiplyFn = void (*)(int64_t, const float*, const float*, float*);

void multiply_baseline(int64_t depth, const float* a, const float* b, float* tile) {
  multiply<4>(depth, a, b, tile);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void multiply_avx2(int64_t depth, const float* a, const float* b,
                                               float* tile) {
  multiply<8>(depth, a, b, tile);
}
[[gnu::target("avx512f")]] void multiply_avx512(int64_t depth, const float* a, const float* b,
                                                float* tile) {
  multiply<16>(depth, a, b, tile);
}
MultiplyFn best_multiply() {
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_avx2;
  return multiply_baseline;
}
#else
MultiplyFn best_multiply() { return multiply_baseline; }
#endif

// One block of a times one block of b, both packed.
void multiply_block(int64_t rows, int64_t columns, int64_t depth, const float* a, const float* b,
                    Matrix<float> c, MultiplyFn multiply_panels) {
  alignas(64) float tile[kRows * kColumns];
  for (int64_t j = 0; j < columns; j += kColumns) {
    for (int64_t i = 0; i < rows; i += kRows) {
      multiply_panels(depth, a + i * depth, b + j * depth, tile);
      const int64_t height = std::min(kRows, rows - i), width = std::min(kColumns, columns - j);
      for (int64_t r = 0; r < height; ++r) {
        float* to = c.data + (i + r) * c.row + j * c.column;
        for (int64_t k = 0; k < width; ++k) to[k * c.column] += tile[r * kColumns + k];
      }
    }
  }
}

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

template <>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Matrix<const float> b,
          Matrix<float> c) {
  const int64_t depth_most = std::min(k, kDepth);
  std::vector<float> packed_a(round_up(std::min(m, kBlockRows), kRows) * depth_most);
  std::vector<float> packed_b(round_up(std::min(n, kBlockColumns), kColumns) * depth_most);
  const MultiplyFn multiply_panels = best_multiply();
  for (int64_t j = 0; j < n; j += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, n - j);
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p);
      pack_b({b.data + p * b.row + j * b.column, b.row, b.column}, depth, columns, packed_b.data());
      for (int64_t i = 0; i < m; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, m - i);
        pack_a({a.data + i * a.row + p * a.column, a.row, a.column}, rows, depth, packed_a.data());
        multiply_block(rows, columns, depth, packed_a.data(), packed_b.data(),
                       {c.data + i * c.row + j * c.column, c.row, c.column}, multiply_panels);
      }
    }
  }
}

// Every other type: plain loops.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const T left = a.data[i * a.row + p * a.column];
      const T* right = b.data + p * b.row;
      T* to = c.data + i * c.row;
      for (int64_t j = 0; j < n; ++j) {
        T& sum = to[j * c.column];
        sum = wrapping_add(sum, wrapping_mul(left, right[j * b.column]));
      }
    }
  }
}

#define KILN_GEMM(T) \
  template void gemm(int64_t, int64_t, int64_t, Matrix<const T>, Matrix<const T>, Matrix<T>)
KILN_GEMM(double);
KILN_GEMM(int8_t);
KILN_GEMM(int16_t);
KILN_GEMM(int32_t);
KILN_GEMM(int64_t);
KILN_GEMM(uint8_t);
KILN_GEMM(uint16_t);
KILN_GEMM(uint32_t);
KILN_GEMM(uint64_t);
#undef KILN_GEMM

}  // namespace kiln::host
