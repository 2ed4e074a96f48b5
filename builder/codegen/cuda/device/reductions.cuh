// Reductions of values, start<D>() being the identity, and of what the threads of a warp or block
// hold.

struct Sum {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    return 0;
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_add<D>(a, b);
  }
};
struct Prod {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    return 1;
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return op_mul<D>(a, b);
  }
};
// Without elements an infinity, or the end of the integers' range.
template <bool kLargest>
struct Extreme {
  template <class D>
  KILN_DEVICE static Reg<D> start() {
    if constexpr (D::kFloat)
      return static_cast<Reg<D>>(float_of(kLargest ? 0xFF800000u : 0x7F800000u));
    else
      return kLargest ? D::lowest() : D::highest();
  }
  template <class D>
  KILN_DEVICE static Reg<D> step(Reg<D> a, Reg<D> b) {
    return kLargest ? op_max<D>(a, b) : op_min<D>(a, b);
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;
struct Any {
  template <class D>
  KILN_DEVICE static bool start() {
    return false;
  }
  template <class D>
  KILN_DEVICE static bool step(bool a, bool b) {
    return a || b;
  }
};
struct All {
  template <class D>
  KILN_DEVICE static bool start() {
    return true;
  }
  template <class D>
  KILN_DEVICE static bool step(bool a, bool b) {
    return a && b;
  }
};

// The result of kLanes neighbouring threads of a warp, in each of them. Every thread of the warp
// takes part.
template <class F, class D, int kLanes>
KILN_DEVICE Reg<D> reduce_lanes(Reg<D> x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) x = F::template step<D>(x, shuffle_xor(x, step));
  return x;
}

// The result of the whole block, in each thread; `slots` holds one element a warp and is used for
// nothing else.
template <class F, class D, int kThreads>
KILN_DEVICE Reg<D> reduce_block(Reg<D> x, Reg<D>* slots) {
  constexpr int kWarps = kThreads / 32;
  x = reduce_lanes<F, D, 32>(x);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;
  __syncthreads();
  return reduce_lanes<F, D, kWarps>(slots[threadIdx.x % kWarps]);
}

// The result of the kBlocks blocks of a cluster, in each thread, after arrive_at_cluster(), which
// the first reduction of a kernel waits for: all blocks must have begun. `slots` holds one element
// for each warp of the cluster and is used for nothing else.
template <class F, class D, int kThreads, int kBlocks, bool kFirst>
KILN_DEVICE Reg<D> reduce_cluster(Reg<D> x, Reg<D>* slots) {
  constexpr int kWarps = kThreads / 32, kSlots = kWarps * kBlocks;
  const unsigned lane = threadIdx.x % 32;
  x = reduce_lanes<F, D, 32>(x);
  if constexpr (kFirst) wait_for_cluster();
  Reg<D>* slot = slots + blockIdx.x % kBlocks * kWarps + threadIdx.x / 32;
  if (lane < kBlocks) write_in_cluster(slot, lane, x);
  arrive_at_cluster();
  wait_for_cluster();
  x = slots[lane % kSlots];
#pragma unroll
  for (int i = 32; i < kSlots; i += 32) x = F::template step<D>(x, slots[i + lane]);
  return reduce_lanes<F, D, (kSlots < 32 ? kSlots : 32)>(x);
}

// Threads whose numbers are equal modulo kColumns share a result; `slots` holds one element a
// thread and is used for nothing else.
template <class F, class D, int kGroup, int kColumns>
KILN_DEVICE Reg<D> reduce_columns(Reg<D> x, Reg<D>* slots) {
  slots[threadIdx.x] = x;
  __syncthreads();
  const int column = threadIdx.x % kColumns;
  Reg<D> result = slots[column];
#pragma unroll
  for (int i = 1; i < kGroup; ++i)
    result = F::template step<D>(result, slots[i * kColumns + column]);
  return result;
}
