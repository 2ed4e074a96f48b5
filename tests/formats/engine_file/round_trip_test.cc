#include <gtest/gtest.h>

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/container.h"
#include "formats/engine_file/read_engine.h"
#include "formats/engine_file/write_engine.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

using testing::affine_plan;

plan::Plan rich_plan() {
  plan::Plan plan = affine_plan({1, 4});
  plan.batch_padding_reason = "node 'softmax' mixes rows";
  plan.origin.model_hash = 0x0123456789abcdef;
  plan.origin.compute_capability = 90;
  plan.origin.cudnn_version = 91300;
  plan.report_json = "{\"kind\": \"kiln-build-report\"}";
  plan.plugins = {{"com.example.Swish", "2"}};
  plan.blobs.push_back(SharedBytes{});
  plan::ShapePoint& point = plan.points[1];
  point.fixed_inputs = {{0, std::vector<std::byte>(64, std::byte{7})}};
  const TensorType type{DType::kF32, {4, 4}};
  plan::PluginCall call{0,
                        2,
                        {{testing::arena(0, 64), type}},
                        {{testing::output(0, 64), type}},
                        testing::arena(64, 32)};
  point.steps.push_back({3, call});
  return plan;
}

bool same_bytes(const SharedBytes& a, const SharedBytes& b) {
  return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

void expect_equal(const plan::Plan& a, const plan::Plan& b) {
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.batch_padding, b.batch_padding);
  EXPECT_EQ(a.batch_padding_reason, b.batch_padding_reason);
  EXPECT_EQ(a.points, b.points);
  EXPECT_EQ(a.constants, b.constants);
  EXPECT_EQ(a.plugins, b.plugins);
  EXPECT_EQ(a.report_json, b.report_json);
  EXPECT_TRUE(same_bytes(a.weights, b.weights));
  ASSERT_EQ(a.blobs.size(), b.blobs.size());
  for (size_t i = 0; i < a.blobs.size(); ++i) EXPECT_TRUE(same_bytes(a.blobs[i], b.blobs[i]));
}

TEST(EngineFile, KeepsEveryField) {
  const testing::ScratchFolder folder;
  const plan::Plan plan = rich_plan();
  ASSERT_TRUE(plan::check_plan(plan)) << plan::check_plan(plan).error().message;
  ASSERT_TRUE(write_engine(plan, folder / "m.engine"));
  const auto read = read_engine(folder / "m.engine");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(plan, *read);
}

TEST(EngineFile, EqualPlansGiveEqualBytes) {
  EXPECT_EQ(*to_bytes(rich_plan()), *to_bytes(rich_plan()));
  plan::Plan other = rich_plan();
  other.points[0].steps[3].region = 1;
  EXPECT_NE(*to_bytes(other), *to_bytes(rich_plan()));
}

TEST(EngineFile, AlignsWeightsToPages) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(write_engine(rich_plan(), folder / "m.engine"));
  const auto read = read_engine(folder / "m.engine");
  ASSERT_TRUE(read);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read->weights.data()) % 4096, 0u);
  const auto bytes = *to_bytes(rich_plan());
  EXPECT_EQ((bytes.size() - rich_plan().weights.size()) % 4096, 0u);
}

// The layout that FORMAT.md gives, read without our own reader.
TEST(EngineFile, HasTheDocumentedHeader) {
  const auto bytes = *to_bytes(rich_plan());
  const auto u32 = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  EXPECT_EQ(std::memcmp(bytes.data(), "\x89KILN\r\n\x1a", 8), 0);
  EXPECT_EQ(u32(8), 1u);
  EXPECT_EQ(u32(12), 4u);
  EXPECT_EQ(u32(16), bytes.size());
  for (uint32_t section = 0; section < 4; ++section) EXPECT_EQ(u32(32 + 32 * section), section + 1);
  const uint32_t report = u32(32 + 2 * 32 + 8), report_bytes = u32(32 + 2 * 32 + 16);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + report, report_bytes),
            rich_plan().report_json);
}

TEST(EngineFile, ReadsUnalignedBytes) {
  const auto bytes = *to_bytes(rich_plan());
  auto shifted = std::make_shared<std::vector<std::byte>>(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted->begin() + 1);
  const auto read = parse_engine({shifted, std::span(*shifted).subspan(1)}, "shifted");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(rich_plan(), *read);
}

TEST(EngineFile, LeavesWeightsUncheckedOnRequest) {
  auto bytes = *to_bytes(rich_plan());
  bytes.back() ^= std::byte{1};
  const SharedBytes file = SharedBytes::take(std::move(bytes));
  EXPECT_TRUE(parse_engine(file, "m", {.check_weights = false}));
  const auto checked = parse_engine(file, "m");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(checked.error().message.find("engine 'm': section 'weights' is damaged"),
            std::string::npos)
      << checked.error().message;
}

TEST(EngineFile, RefusesNewerVersions) {
  auto bytes = *to_bytes(rich_plan());
  bytes[8] = std::byte{2};
  const auto read = parse_engine(SharedBytes::take(std::move(bytes)), "m");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kVersionMismatch);
  EXPECT_EQ(
      read.error().message,
      "engine 'm': has format version 2, this library reads 1 to 1; update Kiln, or build the "
      "engine again with this version");
}

TEST(EngineFile, SaysWhatIsNotAnEngine) {
  const testing::ScratchFolder folder;
  const auto absent = read_engine(folder / "absent.engine");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kIo);
  EXPECT_NE(absent.error().message.find("absent.engine': no such file or directory"),
            std::string::npos);
  EXPECT_FALSE(read_engine(folder.path()));
  for (const char* text : {"", "\x89KILN\r\n\x1a", "ONNX model, surely, and longer than magic"}) {
    testing::write_bytes(folder / "x.engine", std::as_bytes(std::span(text, std::strlen(text))));
    const auto read = read_engine(folder / "x.engine");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruptData);
  }
}

}  // namespace
}  // namespace kiln
