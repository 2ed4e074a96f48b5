#include "builder/verify/incremental_reference.h"

#include <gtest/gtest.h>

#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

std::string chain(const char* weights, const char* last) {
  return std::string(R"(graph {
  input %0 : f32[2x2] "x"
  const %1 : f32[2x2] "w" = )") +
         weights + R"(
  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[2x2] ; "product"
  %3 = )" +
         last + R"((%2) : f32[2x2] ; "last"
  output %3 "y"
})";
}

std::vector<double> first_output(const Result<std::vector<HostTensor>>& outputs) {
  EXPECT_TRUE(outputs.ok());
  return test::to_doubles(outputs.value()[0]);
}

TEST(IncrementalReference, FollowsWhateverChanges) {
  const auto base = ir::parse_text(chain("1, 2, 3, 4", "exp")).value();
  const auto inputs = test::random_inputs(base, 3);
  IncrementalReference incremental(inputs, {});
  ASSERT_TRUE(incremental.run(base, true).ok());
  for (const std::string& text : {chain("1, 2, 3, 4", "exp"), chain("1, 2, 3, 4", "tanh"),
                                  chain("1, 2, 3, 5", "exp"), chain("4, 3, 2, 1", "tanh")}) {
    const auto graph = ir::parse_text(text).value();
    EXPECT_EQ(first_output(incremental.run(graph)), first_output(run_reference(graph, inputs)));
  }
}

TEST(IncrementalReference, ConvertsItsInputs) {
  const auto wide = ir::parse_text(R"(graph {
  input %0 : f32[1] "x"
  %1 = neg(%0) : f32[1] ; "negative"
  output %1 "y"
})");
  const auto narrow = ir::parse_text(R"(graph {
  input %0 : f16[1] "x"
  %1 = neg(%0) : f16[1] ; "negative"
  output %1 "y"
})");
  IncrementalReference incremental(test::random_inputs(wide.value(), 1), {});
  const double exact = first_output(incremental.run(wide.value(), true))[0];
  const double rounded = first_output(incremental.run(narrow.value()))[0];
  EXPECT_NE(exact, rounded);
  EXPECT_NEAR(exact, rounded, 1e-3 * std::abs(exact));
}

}  // namespace
}  // namespace kiln
