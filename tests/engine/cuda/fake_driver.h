// A CUDA driver on the host, for tests of the executor: device memory is the heap's, graphs record
// what their streams were given and replay it, kernels are functions of this file. Each kernel and
// each copy takes a millisecond by its events.
#pragma once
#include <vector>

#include "tests/engine/cuda/fake_libraries.h"

namespace kiln::testing {

struct FakeDriver {
  // The one that the tables of functions use; tests run one after the other.
  static FakeDriver& instance();

  void reset();
  uint64_t live_bytes() const;  // of device memory
  // Since the last reset:
  int launches() const;          // of graphs
  int copies() const;            // put into streams, graphs' aside
  int rebound() const;           // launches of graphs that were given other parameters
  int with_most_shared() const;  // preferences of kernels for shared memory over the first cache
  std::vector<std::vector<uint64_t>> maps() const;  // extents and box of each that was encoded
  int overlapping() const;  // launches that may begin before the one in front of them has ended
  // The driver alone. Every module has the kernels "twice" (x -> 2 x) and "add_row" (x, row of 4 ->
  // x + row) on f32, one thread an element, and "twice_mapped" (x, y, map of x, map of y), which
  // does what "twice" does where the maps say. A launch that leaves a block of memory fails. A test
  // may add other fakes.
  std::shared_ptr<FakeLibraries> libraries() const;
};

}  // namespace kiln::testing
