#include <gtest/gtest.h>

#include "tests/engine/damage.h"
#include "tests/engine/host/network_plan.h"

namespace kiln {
namespace {

// Real kernels meet operations and types that no builder has made.
TEST(DamagedEngine, RealKernelsRunOrFail) {
  EXPECT_GT(testing::load_and_run_damaged(testing::network_plan({1, 4}),
                                          {.host_kernels = host_kernels()}, 500, 6),
            0);
}

}  // namespace
}  // namespace kiln
