#include "engine/cuda/padding_graphs.h"

#include <algorithm>
#include <bit>

#include "engine/cuda/addresses.h"
#include "engine/cuda/io_buffers.h"

namespace kiln::cuda {

Result<PaddingGraphs> PaddingGraphs::create(const std::shared_ptr<const Device>& device,
                                            const plan::ShapePoint& point,
                                            const StagingLayout& staging, const IoAddresses& own,
                                            CUstream upload) {
  PaddingGraphs made;
  if (!staging.possible) return made;
  const auto enqueue = [&](int64_t times, CUstream stream) -> Result<> {
    for (size_t i = 0; i < own.inputs.size(); ++i) {
      if (!staging.inputs[i].staged) continue;
      const RowCopy copy{*device, stream, point.batch, point.batch, staging.inputs[i].rows};
      KILN_RETURN_IF_ERROR(repeat_last_row(address_of(own.inputs[i]), times, copy));
    }
    return Ok();
  };
  for (int64_t done = 1; done < point.batch; done *= 2) {
    const int64_t times = std::min(2 * done, point.batch);
    KILN_ASSIGN_OR_RETURN(CapturedGraph graph,
                          capture_graph(device, " of the padding of '" + point.name + "'", upload,
                                        [&](CUstream stream) { return enqueue(times, stream); }));
    made.graphs_.push_back(std::move(graph.exec));
  }
  return made;
}

CUgraphExec PaddingGraphs::graph(int64_t missing) const {
  return graphs_[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(missing))) - 1].get();
}

}  // namespace kiln::cuda
