// PaddingGraphs: the last row of all inputs of a padded request, repeated by one launch.
//
// A graph has fixed addresses, the last row has not: so a request puts it at the end of each input
// first, whence a graph repeats it forwards, twice or 4, 8, 16 times in all. What it repeats too
// often the request's other rows overwrite. Each copy by itself would cost the host as much as a
// launch does.
#pragma once
#include <vector>

#include "engine/cuda/capture_graph.h"
#include "engine/cuda/point_graphs.h"
#include "engine/request/staging.h"

namespace kiln::cuda {

class PaddingGraphs {
 public:
  // For the inputs at `own`, which grow with the batch; none where the point is never padded. The
  // graphs go to the device in `upload`, which the caller waits for.
  static Result<PaddingGraphs> create(const std::shared_ptr<const Device>& device,
                                      const plan::ShapePoint& point, const StagingLayout& staging,
                                      const IoAddresses& own, CUstream upload);

  // Repeats the last row at least `missing` times in front of it. REQUIRES: 0 < missing < batch of
  // a point that may be padded.
  CUgraphExec graph(int64_t missing) const;

 private:
  std::vector<GraphExec> graphs_;  // i: 2^(i+1) rows are the last one, or all
};

}  // namespace kiln::cuda
