// The program's command line: what it plans, what it refuses, and when. The model is the demo's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/npy/array_file.h"
#include "tests/apps/run_program.h"

namespace kiln::testing {
namespace {

constexpr const char* kModel = "apps/demo/digits.onnx";

class EngineBuild : public ::testing::Test {
 protected:
  // With a new engine's name unless the flags give one.
  ProgramResult build(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--onnx", kModel});
    const bool named = std::find(flags.begin(), flags.end(), "--output") != flags.end();
    if (!named) flags.insert(flags.end(), {"--output", engine_});
    if (std::find(flags.begin(), flags.end(), "--target") == flags.end()) {
      flags.insert(flags.end(), {"--target", "host"});
    }
    return run_program("engine-build", flags);
  }
  // It failed with that exit code and words, and before a tactic was tried.
  void expect_early(const ProgramResult& result, int exit_code, const std::string& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("tactics"), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(engine_));
  }

  ScratchFolder folder_;
  std::string engine_ = folder_ / "m.engine";
};

TEST_F(EngineBuild, WritesTheReportAsAPage) {
  const std::string page = folder_ / "m.html";
  const auto planned = build({"--batches", "1", "--dry-run", "--report", page});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const std::string text = read_text(page);
  EXPECT_TRUE(text.starts_with("<!doctype html>"));
  EXPECT_NE(text.find("\"model_name\": \"digits.onnx\""), std::string::npos);
}

TEST_F(EngineBuild, PlansTheMemoryOfTheBuild) {
  // The cache holds both to the same tactics.
  const std::vector<std::string> flags = {"--batches", "1,64", "--timing-cache",
                                          folder_ / "t.timing", "--report"};
  auto real = flags, dry = flags;
  real.push_back(folder_ / "real.json");
  dry.insert(dry.end(), {folder_ / "dry.json", "--dry-run"});
  const auto built = build(real);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const auto ran = run_program("engine-run", {engine_, "--batch", "64", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_TRUE(std::filesystem::remove(engine_));

  const auto planned = build(dry);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_FALSE(std::filesystem::exists(engine_));
  const auto want = nlohmann::json::parse(read_text(folder_ / "real.json"));
  const auto got = nlohmann::json::parse(read_text(folder_ / "dry.json"));
  EXPECT_EQ(got["weights_bytes"], want["weights_bytes"]);
  EXPECT_EQ(got["weights_bytes"], nlohmann::json::parse(ran.out)["weights_bytes"]);
  ASSERT_EQ(got["points"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(got["points"][i]["memory"]["arena_bytes"], 0);
    EXPECT_FALSE(got["points"][i]["memory"]["buffers"].empty());
    EXPECT_EQ(got["points"][i]["memory"], want["points"][i]["memory"]);
  }
  const auto figure = [](const std::string& text, const std::string& name) {
    const size_t at = text.find(name);
    return at == std::string::npos ? "none" : text.substr(at, text.find('B', at) - at);
  };
  for (const char* name : {", weights ", ", arena "}) {
    EXPECT_EQ(figure(planned.out, name), figure(built.out, name));
  }
  EXPECT_EQ(planned.out.find("arena 0 B"), std::string::npos) << planned.out;
}

npy::Array zeros(const char* name, DType dtype, Shape shape) {
  TensorType type{dtype, std::move(shape)};
  return {name, type, false,
          SharedBytes::take(std::vector<std::byte>(static_cast<size_t>(type.bytes())))};
}

TEST_F(EngineBuild, FindsVerifyDataThatDoesNotFitBeforeTheTactics) {
  const struct {
    npy::Array array;
    const char* words;
  } wrong[] = {
      {zeros("pixels", DType::kF32, {3, 1, 8, 8}), "has no array '"},
      {zeros("image", DType::kF64, {3, 1, 8, 8}), "is f64[3x1x8x8], expected f32["},
      {zeros("image", DType::kF32, {3, 1, 8, 7}), "is f32[3x1x8x7], expected f32["},
  };
  const std::string data = folder_ / "x.npz";
  for (const auto& [array, words] : wrong) {
    ASSERT_TRUE(npy::write_npz(data, std::vector<npy::Array>{array}).ok());
    for (const char* precision : {"--fp32", "--bf16"}) {
      expect_early(build({"--batches", "1,8", "--verify-data", data, precision}), 2, words);
    }
  }
}

TEST_F(EngineBuild, FindsFilesThatCannotBeWrittenBeforeTheWork) {
  const std::string absent = folder_ / "absent" / "file";
  for (const char* flag : {"--output", "--report", "--timing-cache"}) {
    expect_early(build({flag, absent}), 1, "write '" + absent + "': folder");
  }
}

TEST_F(EngineBuild, RefusesFlagsThatWouldDoNothing) {
  const std::string report = folder_ / "r.json";
  expect_early(build({"--check", "--report", report}), 2, "--report means nothing beside --check");
  expect_early(build({"--check", "--explain"}), 2, "--explain means nothing beside --check");
  expect_early(build({"--verify-engine", engine_, "--check"}), 2,
               "--check means nothing beside --verify-engine");
  expect_early(build({"--verify-engine", engine_}), 2,
               "--output means nothing beside --verify-engine");
  const auto narrow =
      run_program("engine-build", {"--onnx", kModel, "--verify-engine", engine_, "--bf16"});
  expect_early(narrow, 2, "--bf16 means nothing beside --verify-engine");
  EXPECT_FALSE(std::filesystem::exists(report));
  EXPECT_EQ(build({"--check"}).exit_code, 0);
}

TEST_F(EngineBuild, RefusesUnknownNamesBeforeTheModelIsRead) {
  const auto pass = build({"--disable-pass", "fuse-everything"});
  expect_early(pass, 2,
               "'fuse-everything': there is no pass of that name; expected one of remove-");
  EXPECT_EQ(pass.err.find("import"), std::string::npos) << pass.err;
  setenv("KILN_DUMP", "graphs", 1);
  const auto dump = build({});
  unsetenv("KILN_DUMP");
  expect_early(dump, 2, "KILN_DUMP: found 'graphs', expected graph");
  expect_early(build({"--target", "gpu"}), 2,
               "--target gpu: is none of auto, host, cuda and sm_NN; if it is the name");
}

TEST_F(EngineBuild, NotesThatPassesStopped) {
  const auto built = build({"--stop-after", "3", "--dry-run"});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("note: stopped after 3 changes by passes\n"), std::string::npos)
      << built.out;
}

}  // namespace
}  // namespace kiln::testing
