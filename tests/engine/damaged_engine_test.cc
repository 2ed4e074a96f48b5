#include <gtest/gtest.h>

#include "tests/engine/damage.h"

namespace kiln {
namespace {

// Loading and running give an error or an answer, never a crash: under sanitizers that is the whole
// claim.
TEST(DamagedEngine, ResealedPlansRunOrFail) {
  EXPECT_GT(testing::load_and_run_damaged(testing::affine_plan({1, 4}),
                                          {.host_kernels = testing::fake_kernels()}, 10'000, 4),
            0);
}

}  // namespace
}  // namespace kiln
