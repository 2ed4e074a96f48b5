// Tensor maps of kernel launches: kept by the file, and refused where they do not fit their
// operands.
#include <gtest/gtest.h>

#include <functional>

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/read_engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

using plan::KernelLaunch;
using plan::TensorMap;

KernelLaunch& first_launch(plan::Plan& plan) {
  return std::get<KernelLaunch>(plan.points[0].steps[0].action);
}

// Its first launch reads and writes f32[2x4], through maps of rows of 16 bytes.
plan::Plan mapped_plan() {
  plan::Plan plan = testing::launch_plan({2});
  first_launch(plan).tensor_maps = {{0, 4, 2}, {1, 4, 256}};
  return plan;
}

TEST(TensorMaps, AreKeptByTheFile) {
  const testing::ScratchFolder folder;
  plan::Plan plan = mapped_plan();
  ASSERT_TRUE(write_engine(plan, folder / "m.engine"));
  auto read = read_engine(folder / "m.engine");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->points, plan.points);
  EXPECT_EQ(first_launch(*read).tensor_maps, (std::vector<TensorMap>{{0, 4, 2}, {1, 4, 256}}));
}

struct Case {
  const char* name;
  std::function<void(KernelLaunch&)> damage;
  const char* message;  // a part of it
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class BrokenTensorMaps : public ::testing::TestWithParam<Case> {};

TEST_P(BrokenTensorMaps, AreRefused) {
  plan::Plan plan = mapped_plan();
  const auto whole = plan::check_plan(plan);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  GetParam().damage(first_launch(plan));
  const auto checked = plan::check_plan(plan);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(checked.error().message.find(GetParam().message), std::string::npos)
      << checked.error().message;
}

TensorMap& map(KernelLaunch& launch) { return launch.tensor_maps[0]; }

const Case kCases[] = {
    {"Operand", [](KernelLaunch& k) { map(k).operand = 2; }, "operand number 2 does not exist"},
    {"OperandOverflow", [](KernelLaunch& k) { map(k).operand = UINT32_MAX; }, "does not exist"},
    {"NoColumns", [](KernelLaunch& k) { map(k).columns = 0; }, "rows have 0 bytes"},
    {"Pitch", [](KernelLaunch& k) { map(k).columns = 2; },
     "operand 0 (f32[2x4]): rows have 8 bytes, expected a multiple of 16"},
    {"LongRows", [](KernelLaunch& k) { map(k).columns = 16; },
     "are not 1 to 4294967296 rows of 64"},
    {"Remainder", [](KernelLaunch& k) { map(k).columns = UINT32_MAX - 3; }, "are not 1 to"},
    {"NoBox", [](KernelLaunch& k) { map(k).box_rows = 0; }, "a box has 0 rows"},
    {"LargeBox", [](KernelLaunch& k) { map(k).box_rows = 257; }, "expected 1 to 256"},
    {"Offset",
     [](KernelLaunch& k) {
       k.outputs[0].buffer.offset += 4;
       map(k).operand = 1;
     },
     "expected a multiple of 16"},
    {"ElementBits",
     [](KernelLaunch& k) {
       k.outputs[0].type = {DType::kF64, {2, 2}};
       map(k).operand = 1;
     },
     "elements have 64 bits, expected 8, 16 or 32"},
};

INSTANTIATE_TEST_SUITE_P(All, BrokenTensorMaps, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln
