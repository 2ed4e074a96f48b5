// Plain kernels of the reference, behind element_values.cuh. Strides and offsets in elements.

struct Matmul {
  const void *a, *b;
  void* c;
  long long a_offset, b_offset, c_offset;
  long long a_row, a_column, b_row, b_column;  // strides
  long long m, n, k;
  int dtype;
};

extern "C" __global__ void reference_matmul(Matmul p) {
  __shared__ double a_tile[16][17], b_tile[16][17];
  const long long row = 16LL * blockIdx.y + threadIdx.y, column = 16LL * blockIdx.x + threadIdx.x;
  double sum = 0;
  for (long long at = 0; at < p.k; at += 16) {
    const long long ka = at + threadIdx.x, kb = at + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] =
        row < p.m && ka < p.k ? load(p.a, p.a_offset + row * p.a_row + ka * p.a_column, p.dtype)
                              : 0;
    b_tile[threadIdx.y][threadIdx.x] =
        column < p.n && kb < p.k
            ? load(p.b, p.b_offset + kb * p.b_row + column * p.b_column, p.dtype)
            : 0;
    __syncthreads();
    const int count = p.k - at < 16 ? static_cast<int>(p.k - at) : 16;
    for (int i = 0; i < count; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    __syncthreads();
  }
  if (row < p.m && column < p.n) store(p.c, p.c_offset + row * p.n + column, p.dtype, sum);
}

// Three spatial axes; those that a convolution lacks have extent 1. Channels are of one group.
struct Conv {
  const void *x, *w, *bias;  // bias may be null
  void* y;
  long long batch, groups, in_channels, out_channels;
  long long in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
  int dtype;
};

// The index that grid position `i` stands for, from the last axis to the first.
struct Point {
  long long n, channel, at[3];
};
__device__ static bool find(const Conv& p, Point& point) {
  long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  for (int axis = 2; axis >= 0; --axis) {
    point.at[axis] = i % p.out[axis];
    i /= p.out[axis];
  }
  const long long channels = p.groups * p.out_channels;
  point.channel = i % channels;
  point.n = i / channels;
  return point.n < p.batch;
}
__device__ static void finish(const Conv& p, const Point& point, double sum) {
  if (p.bias != nullptr) sum += load(p.bias, point.channel, p.dtype);
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  store(p.y, i, p.dtype, sum);
}

extern "C" __global__ void reference_conv(Conv p) {
  Point point;
  if (!find(p, point)) return;
  const long long group = point.channel / p.out_channels;
  double sum = 0;
  for (long long c = 0; c < p.in_channels; ++c) {
    const long long x_at = (point.n * p.groups + group) * p.in_channels + c;
    const long long w_at = point.channel * p.in_channels + c;
    for (long long k0 = 0; k0 < p.kernel[0]; ++k0) {
      const long long i0 = point.at[0] * p.stride[0] + k0 * p.dilation[0] - p.pad[0];
      if (i0 < 0 || i0 >= p.in[0]) continue;
      for (long long k1 = 0; k1 < p.kernel[1]; ++k1) {
        const long long i1 = point.at[1] * p.stride[1] + k1 * p.dilation[1] - p.pad[1];
        if (i1 < 0 || i1 >= p.in[1]) continue;
        for (long long k2 = 0; k2 < p.kernel[2]; ++k2) {
          const long long i2 = point.at[2] * p.stride[2] + k2 * p.dilation[2] - p.pad[2];
          if (i2 < 0 || i2 >= p.in[2]) continue;
          sum +=
              load(p.x, ((x_at * p.in[0] + i0) * p.in[1] + i1) * p.in[2] + i2, p.dtype) *
              load(p.w, ((w_at * p.kernel[0] + k0) * p.kernel[1] + k1) * p.kernel[2] + k2, p.dtype);
        }
      }
    }
  }
  finish(p, point, sum);
}

// The input index whose window reaches output `o` with tap `k`; -1: none.
__device__ static long long source(const Conv& p, int axis, long long o, long long k) {
  const long long scaled = o + p.pad[axis] - k * p.dilation[axis];
  if (scaled < 0 || scaled % p.stride[axis] != 0) return -1;
  const long long i = scaled / p.stride[axis];
  return i < p.in[axis] ? i : -1;
}

extern "C" __global__ void reference_conv_transpose(Conv p) {
  Point point;
  if (!find(p, point)) return;
  const long long group = point.channel / p.out_channels, m = point.channel % p.out_channels;
  double sum = 0;
  for (long long c = 0; c < p.in_channels; ++c) {
    const long long x_at = (point.n * p.groups + group) * p.in_channels + c;
    const long long w_at = (group * p.in_channels + c) * p.out_channels + m;
    for (long long k0 = 0; k0 < p.kernel[0]; ++k0) {
      const long long i0 = source(p, 0, point.at[0], k0);
      if (i0 < 0) continue;
      for (long long k1 = 0; k1 < p.kernel[1]; ++k1) {
        const long long i1 = source(p, 1, point.at[1], k1);
        if (i1 < 0) continue;
        for (long long k2 = 0; k2 < p.kernel[2]; ++k2) {
          const long long i2 = source(p, 2, point.at[2], k2);
          if (i2 < 0) continue;
          sum +=
              load(p.x, ((x_at * p.in[0] + i0) * p.in[1] + i1) * p.in[2] + i2, p.dtype) *
              load(p.w, ((w_at * p.kernel[0] + k0) * p.kernel[1] + k1) * p.kernel[2] + k2, p.dtype);
        }
      }
    }
  }
  finish(p, point, sum);
}
