// Device memory: what the engine's info tells before anything runs is what it takes.
#include <algorithm>

#include "tests/gpu/gpu_fixture.h"

namespace kiln::testing {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

void print(const std::string& label, const MemoryUse& used) {
  std::printf("%-28s planned %9.2f MB, measured %9.2f MB:", label.c_str(),
              static_cast<double>(used.planned) / kMegabyte,
              static_cast<double>(used.measured) / kMegabyte);
  for (const auto& [function, bytes] : used.by_function) {
    if (bytes == 0) continue;
    std::printf(" %s %.2f", function.c_str(), static_cast<double>(bytes) / kMegabyte);
  }
  std::printf("\n");
}

using Memory = OnGpu;

// Beyond the context, the libraries' handles and the kernels that the libraries keep once loaded:
// so a first load goes before.
TEST_F(Memory, IsWhatThePlanTells) {
  std::vector<EngineRecipe> recipes = small_engines();
  for (const EngineRecipe& extra : extra_engines()) recipes.push_back(extra);
  for (const EngineRecipe& recipe : recipes) {
    SCOPED_TRACE(recipe.name);
    const Subject subject = subject_of(recipe);
    print(recipe.name + ", first load", measure_memory(subject, 1));
    for (int contexts : {1, 4}) {
      const MemoryUse used = measure_memory(subject, contexts);
      print(recipe.name + ", " + std::to_string(contexts) + " contexts", used);
      const int64_t allowed = std::max<int64_t>(
          32 << 20, static_cast<int64_t>(0.02 * static_cast<double>(used.planned)));
      EXPECT_LE(std::abs(used.measured - used.planned), allowed);
    }
  }
}

}  // namespace
}  // namespace kiln::testing
