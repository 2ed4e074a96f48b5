// Tensor maps of the fake driver: they hold the address alone.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

namespace kiln::testing {

// Takes what the driver takes of Kiln's.
CUresult CUDAAPI encode_map(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                            const cuuint64_t* extents, const cuuint64_t* strides,
                            const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

// Extents and box of each that was encoded. Tests of maps have one thread.
std::vector<std::vector<uint64_t>>& encoded_maps();

float* address_of_map(const void* map);

}  // namespace kiln::testing
