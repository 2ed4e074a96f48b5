// Requests of any size up to the largest bucket: a row's answer does not depend on its company.
#include <cmath>

#include "tests/gpu/gpu_fixture.h"

namespace kiln::testing {
namespace {

// As the issue of f32 asks: relative 1e-3, absolute 1e-4. Integers are equal.
void expect_close(const TensorInfo& info, const Block& got, const Block& want) {
  ASSERT_EQ(got.size(), want.size());
  if (info.type.dtype != DType::kF32) {
    EXPECT_TRUE(got == want) << info.name;
    return;
  }
  for (size_t at = 0; at < got.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, got.data() + at, sizeof a);
    std::memcpy(&b, want.data() + at, sizeof b);
    ASSERT_LE(std::abs(a - b), 1e-4 + 1e-3 * std::abs(b)) << info.name << ", byte " << at;
  }
}

using OddSizes = OnGpu;

TEST_F(OddSizes, RowsEqualThoseThatRanAlone) {
  for (const EngineRecipe& recipe : small_engines()) {
    if (recipe.precision != Precision::kFp32) continue;
    SCOPED_TRACE(recipe.name);
    const auto engine = load(subject_of(recipe), 1);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    std::vector<Answer> alone;
    for (uint64_t seed = 0; seed < 64; ++seed) {
      auto answer = infer(*engine, make_up_request(*engine, 1, seed));
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      alone.push_back(*std::move(answer));
    }
    for (uint64_t rows : {1, 3, 5, 37, 64}) {
      for (uint64_t stride : {1, 27}) {  // two companies for each row
        std::vector<uint64_t> seeds;
        for (uint64_t i = 0; i < rows; ++i) seeds.push_back((i * stride + stride) % 64);
        const auto answer = infer(*engine, make_up_request(*engine, seeds));
        ASSERT_TRUE(answer.ok()) << answer.error().message;
        for (size_t row = 0; row < rows; ++row) {
          for (size_t i = 0; i < answer->infos.size(); ++i) {
            const Block got = take_row(answer->infos[i], answer->outputs[i],
                                       static_cast<int64_t>(rows), static_cast<int64_t>(row));
            expect_close(answer->infos[i], got, alone[seeds[row]].outputs[i]);
            ASSERT_FALSE(HasFatalFailure()) << rows << " rows, row " << row;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
