// What a region reads, writes and computes, by the book: for the report and for budgets.
#pragma once
#include <cstdint>

#include "builder/ir/graph.h"

namespace kiln {

struct RegionWork {
  // Its inputs and outputs, once each; of inputs that are only gathered from, what is taken.
  uint64_t bytes_read = 0, bytes_written = 0;
  // Of control flow: one round of a loop whose rounds are not known, the longer branch of two.
  uint64_t flops = 0;  // a multiply-add counts 2, any other scalar function 1
  uint64_t steps = 0;  // operations, as often as they run
};

RegionWork region_work(const ir::Graph& body);

}  // namespace kiln
