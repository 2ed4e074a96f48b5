// Runs generated CUDA text without a GPU, as host C++ made by the compiler that builds the tests.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "builder/codegen/cuda/emit_cuda.h"
#include "formats/loop_ir/loop_kernel.h"
#include "tests/builder/codegen/run_body.h"

namespace kiln::codegen {

// A batch of sources, compiled as one program.
class HostProgram {
 public:
  struct Item {
    loop::LoopKernel kernel;
    CudaSource source;
  };
  // One compiler run for all items.
  static Result<HostProgram> compile(const std::vector<Item>& items);

  // The outputs of an item; poison where nothing was written. An error tells of accesses outside
  // of buffers or off their boundary, and of threads that wait at different barriers.
  Result<std::vector<Bytes>> run(size_t item, const std::vector<Bytes>& inputs) const;
  // The same with output 0 in the memory of an input.
  Result<std::vector<Bytes>> run_overwriting(size_t item, const std::vector<Bytes>& inputs,
                                             size_t input) const;

 private:
  Result<std::vector<Bytes>> run(size_t item, const std::vector<Bytes>& inputs,
                                 std::optional<size_t> overwritten) const;

  std::vector<Item> items_;
  std::shared_ptr<void> library_;
};

// What the host interpreter makes of a kernel.
Result<std::vector<Bytes>> interpret(const loop::LoopKernel& kernel,
                                     const std::vector<Bytes>& inputs);

}  // namespace kiln::codegen
