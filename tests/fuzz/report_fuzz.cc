// Any bytes as a build report, which is part of an engine file: what is accepted can be printed,
// written and read again.
#include <cstdint>
#include <cstdlib>

#include "formats/report/report.h"
#include "formats/report/table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto report = kiln::report::from_json({reinterpret_cast<const char*>(data), size});
  if (!report.ok()) return 0;
  (void)kiln::report::to_table(*report, {.explain = true, .memory_map = true});
  (void)kiln::report::to_table(*report, {.most_regions = 1});
  if (!kiln::report::from_json(kiln::report::to_json(*report)).ok()) std::abort();
  return 0;
}
