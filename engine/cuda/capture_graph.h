// Work that is put into a stream again and again, as one launch.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/cuda/owned.h"

namespace kiln::cuda {

struct CapturedGraph {
  Graph captured;
  GraphExec exec;
};

// What `enqueue` puts into the stream that it is given. The graph goes to the device in `upload`,
// which the caller waits for. `of` names it in errors: " of 'b8'".
Result<CapturedGraph> capture_graph(const std::shared_ptr<const Device>& device,
                                    const std::string& of, CUstream upload,
                                    const std::function<Result<>(CUstream)>& enqueue);

}  // namespace kiln::cuda
