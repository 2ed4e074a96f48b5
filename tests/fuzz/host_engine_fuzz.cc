// Any bytes as an engine for target host with its real kernels. Loops are not run: they may be
// meant to go on for ever.
#include <algorithm>

#include "formats/engine_file/read_engine.h"
#include "tests/engine/host/network_plan.h"
#include "tests/fuzz/engine_file.h"

using namespace kiln::testing;

namespace {

bool has_loops(const kiln::plan::Plan& plan) {
  return std::ranges::any_of(plan.points, [](const kiln::plan::ShapePoint& point) {
    return std::ranges::any_of(point.steps, [](const kiln::plan::Step& step) {
      return std::holds_alternative<kiln::plan::Repeat>(step.action);
    });
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> file(begin, begin + size);
  reseal(file);
  const auto plan = kiln::parse_engine(kiln::SharedBytes::take(std::move(file)), "fuzz");
  if (!plan || has_loops(*plan)) return 0;
  const auto engine = load_resealed(data, size, *plan, {.host_kernels = kiln::host_kernels()});
  if (engine) run_first_point(*engine);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return mutate_section(data, size, max_size, seed, network_plan({1, 2}));
}
