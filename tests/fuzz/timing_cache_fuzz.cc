// Any bytes as a timing cache: what is kept survives being written and read again.
#include <cstdint>
#include <cstdlib>

#include "formats/timing_cache/timing_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kiln::TimingCache cache = kiln::parse_timing_cache(text).cache;
  if (kiln::parse_timing_cache(kiln::to_json(cache)).cache != cache) std::abort();
  return 0;
}
