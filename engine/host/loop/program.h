// Program: a verified loop kernel made ready to run: which dims become lanes, what is computed
// when, and where each expression's lanes lie.
//
// Lanes run over the parallel dims, and the reduced dims are looped over point by point; or lanes
// run over the reduced dims, and each parallel point is a row of its own. A row that fits into one
// block is walked once: what its first reduction computed is still there for what follows.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/host/lanes.h"
#include "engine/host/loop/access.h"
#include "engine/host/loop/lane_functions.h"
#include "formats/loop_ir/loop_kernel.h"

namespace kiln::host {

struct Program {
  // What running one expr needs.
  struct Instruction {
    Lane lane = Lane::kF32;
    bool uniform = false;             // one lane stands for all lanes of a block
    size_t offset = 0;                // of its lanes in a worker's memory
    size_t accumulators = 0;          // kReduce: of its accumulators
    std::optional<Access> access;     // kLoad, kStore, kIota, a range test
    bool range_test = false;          // kApply of an index against a constant: whether in bounds
    bool gathers_rows = false;        // kLoad: gathered indices stay the same along a run
    LaneFunction function = nullptr;  // kApply
    Reduction reduction = {};         // kReduce
    std::vector<DType> arg_types;
    std::optional<loop::ExprId> forwards_to;  // a store whose memory can take the lanes directly
  };
  // One round: exprs of the parallel dims, then a loop over the reduced dims, then the results of
  // its reductions.
  struct Level {
    std::vector<loop::ExprId> parallel;
    std::vector<loop::ExprId> reduced;  // exprs and stores inside the loop
    std::vector<loop::ExprId> reduces;
    bool has_loop() const { return !reduced.empty() || !reduces.empty(); }
  };

  loop::LoopKernel kernel;
  bool lanes_are_reduced = false;
  std::vector<uint32_t> lane_dims, other_dims;  // outer to inner
  int64_t lane_points = 1, other_points = 1;
  int64_t block = 1;                      // lanes at a time
  bool row_fits = false;                  // the loop over the reduced dims is one block
  std::vector<Instruction> instructions;  // one an expr
  std::vector<loop::ExprId> once;         // before everything else
  std::vector<Level> levels;
  std::vector<loop::ExprId> last;  // stores of the parallel dims
  size_t scratch = 0;              // offset of one more block of 8-byte lanes
  size_t worker_bytes = 0;
};

// REQUIRES: verify(kernel) was ok.
Program make_program(loop::LoopKernel kernel);

}  // namespace kiln::host
