// gemm: c += a b on strided matrices, the inner loop of matmul, conv, attention and the recurrent
// operations.
#pragma once
#include <cstdint>

namespace kiln::host {

// Element (i, j) is at data[i * row + j * column].
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
};

// c [m, n] += a [m, k] b [k, n], on the calling thread. f32 sums run in blocks of 256 along k,
// always in the same order: a row of c does not depend on m, n or its neighbours. Integers wrap.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c);

}  // namespace kiln::host
