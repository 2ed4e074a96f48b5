// Any bytes as an engine for target host, with kernels that do little: loading and control flow.
#include "tests/engine/plan_fixtures.h"
#include "tests/fuzz/engine_file.h"

using namespace kiln::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto engine =
      load_resealed(data, size, affine_plan({1, 2}), {.host_kernels = fake_kernels()});
  if (engine) run_first_point(*engine);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return mutate_section(data, size, max_size, seed, affine_plan({1, 2}));
}
