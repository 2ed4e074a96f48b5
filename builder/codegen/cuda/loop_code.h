// Writes the body of a kernel, given how points are spread over threads: for each level of
// reductions what precedes its loop, the loop, and the combination of the threads' results.
#pragma once
#include <functional>
#include <string>

#include "builder/codegen/cuda/lane_motion.h"
#include "formats/result.h"

namespace kiln::codegen {

// How the points of the looped dims are spread; the other dims, d<n>, are fixed in a thread.
struct Spread {
  loop::DimSet looped = 0;
  Lanes lanes;
  int64_t chunks = 1;  // that each thread loops over
  uint32_t batch = 1;  // chunks whose loads come first, together
  bool keep = false;   // all chunks are one batch, whose loads are kept for all levels
  // The flat point of the looped dims where chunk "c" begins; a chunk beyond `limit` is skipped.
  // Empty limit: there is none.
  std::function<std::string(const std::string& chunk)> position;
  std::string limit;
  std::string store_guard;   // for stores in loops; empty: always
  std::string leader_guard;  // for stores outside of loops
  // From this thread's accumulator to the result for all that share the reduction.
  std::function<std::string(const loop::Expr& reduce, const std::string& accumulator)> combine;
  // Declares what combine needs.
  std::function<std::string(loop::ExprId reduce)> shared;
};

std::string loop_body(const KernelFacts& facts, const Spread& spread);

// The 32-bit registers that kept values and loads take, for one thread.
int64_t kept_registers(const KernelFacts& facts, const Spread& spread);

// "const int d2 = ..." for each dim, given the name of their flat index.
std::vector<std::string> dims_of_flat(const KernelFacts& facts, const std::vector<uint32_t>& dims,
                                      const std::string& flat);

}  // namespace kiln::codegen
