#include "formats/loop_ir/scalar_function.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ScalarFunction, NamesRoundTripAndAreUnique) {
  for (int i = 0; i < kScalarFnCount; ++i) {
    const auto fn = static_cast<ScalarFn>(i);
    EXPECT_EQ(parse_scalar_fn(to_string(fn)), fn);
  }
  for (int i = 0; i < kReduceFnCount; ++i) {
    const auto fn = static_cast<ReduceFn>(i);
    EXPECT_EQ(parse_reduce_fn(to_string(fn)), fn);
  }
  EXPECT_FALSE(parse_scalar_fn("tanhh"));
}

TEST(ScalarFunction, RowsStandWhereTheirNumbersSay) {
  EXPECT_EQ(to_string(ScalarFn::kIdentity), "identity");
  EXPECT_EQ(to_string(ScalarFn::kIsNegInf), "is_neg_inf");
  EXPECT_EQ(to_string(ScalarFn::kAdd), "add");
  EXPECT_EQ(to_string(ScalarFn::kShiftRight), "shift_right");
  EXPECT_EQ(to_string(ScalarFn::kGreaterEqual), "greater_equal");
  EXPECT_EQ(to_string(ScalarFn::kWhere), "where");
  EXPECT_EQ(arity(ScalarFn::kErf), 1);
  EXPECT_EQ(arity(ScalarFn::kPow), 2);
  EXPECT_EQ(arity(ScalarFn::kWhere), 3);
  EXPECT_TRUE(yields_bool(ScalarFn::kIsNan));
  EXPECT_FALSE(yields_bool(ScalarFn::kBitNot));
  EXPECT_TRUE(yields_bool(ScalarFn::kLessEqual));
}

}  // namespace
}  // namespace kiln
