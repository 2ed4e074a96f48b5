// Any bytes as a .npy or .npz file; what is accepted has as much data as its type says.
#include <cstdlib>
#include <vector>

#include "formats/npy/array_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const auto arrays =
      kiln::npy::parse_arrays(kiln::SharedBytes::take({begin, begin + size}), "fuzz");
  if (!arrays.ok()) return 0;
  for (const kiln::npy::Array& array : *arrays) {
    if (static_cast<uint64_t>(array.type.bytes()) != array.data.size()) std::abort();
  }
  return 0;
}
