#include "engine/cuda/captured_node.h"

namespace kiln::cuda {

CUgraphNode latest_node(const Device& device, CUstream stream) {
  const DriverApi& driver = device.driver();
  if (driver.stream_get_capture_info == nullptr) return nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const void* edges = nullptr;
  size_t count = 0;
  const CUresult told =
      driver.stream_get_capture_info(stream, &status, &id, &graph, &nodes, &edges, &count);
  const bool captures = told == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return captures && count == 1 ? nodes[0] : nullptr;
}

bool is_kernel(const Device& device, CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  return node != nullptr && device.driver().graph_node_get_type(node, &type) == CUDA_SUCCESS &&
         type == CU_GRAPH_NODE_TYPE_KERNEL;
}

}  // namespace kiln::cuda
