// A CUDA driver on the host, for tests of the executor: device memory is the heap's, graphs record
// what their streams were given and replay it, kernels are functions of this file. It counts what
// lives, and can make its n-th call fail.
#pragma once
#include "engine/cuda/driver_api.h"
#include "engine/cuda/libraries.h"
#include "formats/engine_file/plan.h"

namespace kiln::testing {

struct FakeDriver {
  static constexpr int kNever = -1;

  // The one that the tables of functions use; tests run one after the other.
  static FakeDriver& instance();

  void reset();
  // The n-th of the calls that can fail (0: the next) fails with `result`, once.
  void fail_call(int n, CUresult result);
  int calls() const;
  int live() const;  // contexts, blocks, modules, streams, events and graphs not given back
  uint64_t live_bytes() const;
  int launches() const;  // of graphs
  std::shared_ptr<const cuda::Libraries> libraries() const;
};

// A cubin that the fake driver takes. Its functions, on f32, one thread an element:
// "twice": x -> y = 2 x. "add_row": x, row of 4 -> x + row.
SharedBytes fake_cubin();

}  // namespace kiln::testing
