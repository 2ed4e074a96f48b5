// What a stream under capture has come to.
#pragma once
#include "engine/cuda/device.h"

namespace kiln::cuda {

// The node that was put into the capture last; null where nothing was, where it was not one node,
// where the stream is under no capture, or the driver does not tell.
CUgraphNode latest_node(const Device& device, CUstream stream);

bool is_kernel(const Device& device, CUgraphNode node);

}  // namespace kiln::cuda
