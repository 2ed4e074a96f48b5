#include "tests/engine/cuda/fake_tensor_maps.h"

namespace kiln::testing {

CUresult CUDAAPI encode_map(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                            const cuuint64_t* extents, const cuuint64_t* strides,
                            const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill) {
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  if (rank != 2 || at % 16 != 0 || strides[0] % 16 != 0 || extents[0] * extents[1] == 0 ||
      box[0] > 256 || box[1] > 256 || swizzle != CU_TENSOR_MAP_SWIZZLE_128B) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *map = {};
  map->opaque[0] = at;
  encoded_maps().push_back({extents[0], extents[1], box[0], box[1]});
  return CUDA_SUCCESS;
}

std::vector<std::vector<uint64_t>>& encoded_maps() {
  static std::vector<std::vector<uint64_t>> maps;
  return maps;
}

float* address_of_map(const void* map) {
  return reinterpret_cast<float*>(static_cast<const CUtensorMap*>(map)->opaque[0]);
}

}  // namespace kiln::testing
