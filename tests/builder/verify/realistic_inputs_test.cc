#include "builder/verify/realistic_inputs.h"

#include <gtest/gtest.h>

#include <set>

#include "builder/verify/random_inputs.h"
#include "tests/builder/random_tensors.h"

namespace kiln {
namespace {

constexpr char kImages[] = R"(graph {
  input %0 : f32[2x3x32x48] "first"
  input %1 : f32[2x32x48x3] "last"
  input %2 : f32[2x32x48x8] "features"
  output %0 "a"
  output %1 "b"
  output %2 "c"
})";

// Distinct values of an image: a page has one of paper and few inks, noise has one a pixel.
size_t distinct(const HostTensor& tensor) {
  const auto values = test::to_doubles(tensor);
  return std::set<double>(values.begin(), values.end()).size();
}

TEST(RealisticInputs, NoiseThenSmoothThenPages) {
  const ir::Graph graph = ir::parse_text(kImages).value();
  const auto noise = realistic_inputs(graph, 1), smooth = realistic_inputs(graph, 2),
             page = realistic_inputs(graph, 3);
  for (size_t i : {0, 1}) {
    EXPECT_GT(distinct(noise[i]), 9000u);
    EXPECT_GT(distinct(smooth[i]), 1000u);
    EXPECT_GT(distinct(page[i]), 1u);
    EXPECT_LT(distinct(page[i]), 40u);
  }
  // Neighbours differ little in what is smooth: under a tenth of noise's mean square.
  const auto roughness = [](const HostTensor& tensor) {
    const auto x = test::to_doubles(tensor);
    double sum = 0;
    for (size_t i = 1; i < x.size(); ++i) sum += (x[i] - x[i - 1]) * (x[i] - x[i - 1]);
    return sum / static_cast<double>(x.size());
  };
  EXPECT_LT(roughness(smooth[0]), 0.2 * roughness(noise[0]));
}

TEST(RealisticInputs, OtherInputsAreRandomAndKnownOnesStay) {
  const ir::Graph graph = ir::parse_text(kImages).value();
  const auto random = random_inputs(graph, 3), realistic = realistic_inputs(graph, 3);
  EXPECT_EQ(test::to_doubles(random[2]), test::to_doubles(realistic[2]));
  const std::optional<HostTensor> known[] = {random[0], std::nullopt, std::nullopt};
  EXPECT_EQ(test::to_doubles(realistic_inputs(graph, 3, known)[0]), test::to_doubles(random[0]));
}

}  // namespace
}  // namespace kiln
