#include "engine/cuda/capture_graph.h"

namespace kiln::cuda {

Result<CapturedGraph> capture_graph(const std::shared_ptr<const Device>& device,
                                    const std::string& of, CUstream upload,
                                    const std::function<Result<>(CUstream)>& enqueue) {
  const DriverApi& driver = device->driver();
  const auto lock = device->lock_capture();
  const CUstream stream = device->capture_stream();
  // Relaxed: the libraries load code when a kernel is first launched, which other modes forbid.
  KILN_RETURN_IF_ERROR(
      device->check(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                    "cuStreamBeginCapture" + of));
  auto put = enqueue(stream);
  CUgraph captured = nullptr;  // the capture ends in any case: the stream is of no use otherwise
  auto ended =
      device->check(driver.stream_end_capture(stream, &captured), "cuStreamEndCapture" + of);
  CapturedGraph graph{Graph(device, captured), {}};
  if (!put) return std::move(put).error();
  if (!ended) return std::move(ended).error();
  CUgraphExec instance = nullptr;
  KILN_RETURN_IF_ERROR(
      device->check(driver.graph_instantiate(&instance, captured, 0), "cuGraphInstantiate" + of));
  graph.exec = GraphExec(device, instance);
  KILN_RETURN_IF_ERROR(device->check(driver.graph_upload(instance, upload), "cuGraphUpload"));
  return graph;
}

}  // namespace kiln::cuda
