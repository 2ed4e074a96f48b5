// Comparison with the reference, behind element_values.cuh: builder/verify/compare.h on the GPU.

struct Rows {
  const void* want;
  double* scales;  // of each row
  long long rows, length;
  int dtype, lanes;  // threads a row, a power of 2 up to 256
};

__device__ static bool is_finite(double value) { return value - value == 0; }

// The root mean square of a row's finite values, or 1 if that is smaller.
extern "C" __global__ void row_scales(Rows p) {
  __shared__ double sums[256], counts[256];
  const int groups = 256 / p.lanes, lane = threadIdx.x % p.lanes;
  const long long first = static_cast<long long>(blockIdx.x) * groups + threadIdx.x / p.lanes;
  const long long step = static_cast<long long>(gridDim.x) * groups;
  // Every thread makes as many rounds, so that all meet at the barriers.
  for (long long round = 0; round * step < p.rows; ++round) {
    const long long row = round * step + first;
    double sum = 0, count = 0;
    for (long long i = lane; row < p.rows && i < p.length; i += p.lanes) {
      const double value = load(p.want, row * p.length + i, p.dtype);
      if (!is_finite(value)) continue;
      sum += value * value;
      count += 1;
    }
    sums[threadIdx.x] = sum;
    counts[threadIdx.x] = count;
    for (int half = p.lanes / 2; half > 0; half /= 2) {
      __syncthreads();
      if (lane >= half) continue;
      sums[threadIdx.x] += sums[threadIdx.x + half];
      counts[threadIdx.x] += counts[threadIdx.x + half];
    }
    if (lane == 0 && row < p.rows) {
      const double total = counts[threadIdx.x];
      const double scale = total > 0 ? sqrt(sums[threadIdx.x] / total) : 1;
      p.scales[row] = scale > 1 ? scale : 1;
    }
    __syncthreads();
  }
}

// The worst of some elements, the first of equals, and the largest errors of all.
struct Found {
  double over, got, want, allowed;
  double max_abs_error, max_rel_error;
  long long index;
};

struct Comparison {
  const void *got, *want;
  const double* scales;
  Found* found;  // one a block
  long long count, length;
  double rtol, atol, noise;
  int dtype;
};

__device__ static void compare_element(const Comparison& p, long long i, Found& found) {
  const double got = load(p.got, i, p.dtype), want = load(p.want, i, p.dtype);
  if (got == want) return;
  const double scale = p.scales[i / p.length];
  const double allowed = p.atol * scale + p.rtol * fabs(want) + p.noise;
  double over;
  if (is_finite(got) && is_finite(want)) {
    const double error = fabs(got - want);
    found.max_abs_error = fmax(found.max_abs_error, error);
    found.max_rel_error = fmax(found.max_rel_error, error / fmax(fabs(want), scale));
    over = allowed == 0 ? __longlong_as_double(0x7ff0000000000000ll) : error / allowed;
  } else {
    over = got != got && want != want ? 0 : __longlong_as_double(0x7ff0000000000000ll);
  }
  if (over <= found.over) return;
  found.over = over;
  found.got = got;
  found.want = want;
  found.allowed = allowed;
  found.index = i;
}

__device__ static void merge(Found& into, const Found& other) {
  const double abs_error = fmax(into.max_abs_error, other.max_abs_error);
  const double rel_error = fmax(into.max_rel_error, other.max_rel_error);
  if (other.over > into.over || (other.over == into.over && other.index < into.index)) into = other;
  into.max_abs_error = abs_error;
  into.max_rel_error = rel_error;
}

extern "C" __global__ void compare_elements(Comparison p) {
  __shared__ Found shared[256];
  Found found = {};
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
       i += step) {
    compare_element(p, i, found);
  }
  shared[threadIdx.x] = found;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) merge(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) p.found[blockIdx.x] = shared[0];
}
