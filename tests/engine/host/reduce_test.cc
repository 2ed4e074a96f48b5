#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

using F = std::vector<float>;

TEST(Reduce, EverySetOfAxes) {
  const auto x = ramp({2, 3, 4});
  EXPECT_EQ(run("reduce{axes=[0, 2], fn=\"sum\", keep_dims=0}", {x}).values<float>(),
            (F{60, 92, 124}));
  EXPECT_EQ(run("reduce{axes=[1], fn=\"max\", keep_dims=1}", {x}).values<float>(),
            (F{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(run("reduce{axes=[0, 1, 2], fn=\"min\", keep_dims=1}", {x}).type.shape,
            (Shape{1, 1, 1}));
  EXPECT_EQ(run("reduce{axes=[], fn=\"sum\", keep_dims=1}", {x}).values<float>(),
            x.values<float>());
}

TEST(Reduce, AnEmptyAxisYieldsTheIdentity) {
  const auto x = f32({2, 0}, {});
  EXPECT_EQ(run("reduce{axes=[1], fn=\"sum\", keep_dims=0}", {x}).values<float>(), (F{0, 0}));
  EXPECT_EQ(run("reduce{axes=[1], fn=\"prod\", keep_dims=0}", {x}).values<float>(), (F{1, 1}));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(run("reduce{axes=[1], fn=\"max\", keep_dims=0}", {x}).values<float>(),
            (F{-infinity, -infinity}));
  EXPECT_EQ(run("reduce{axes=[0], fn=\"min\", keep_dims=0}", {i32({0}, {})}).values<int>(),
            (std::vector<int>{INT32_MAX}));
}

TEST(Reduce, MillionsKeepTheirSum) {
  const auto x = f32({3000000}, F(3000000, 0.1F));
  EXPECT_NEAR(run("reduce{axes=[0], fn=\"sum\", keep_dims=0}", {x}).values<float>()[0],
              3000000 * static_cast<double>(0.1F), 0.05);
}

TEST(Reduce, NanIsTheMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = f32({9, 1}, {1, nan, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(std::isnan(run("reduce{axes=[0], fn=\"max\", keep_dims=0}", {x}).values<float>()[0]));
}

TEST(Reduce, AnyAndAllTakeBools) {
  const auto x = boolean({2, 2}, {0, 1, 1, 1});
  EXPECT_EQ(run("reduce{axes=[1], fn=\"all\", keep_dims=0}", {x}).values<uint8_t>(),
            (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(run("reduce{axes=[1], fn=\"any\", keep_dims=0}", {x}).values<uint8_t>(),
            (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(error_of("reduce{axes=[0], fn=\"any\", keep_dims=0}", {ramp({2})}),
            "reduce: input 0 is f32[2], expected type bool");
}

}  // namespace
}  // namespace kiln::testing
