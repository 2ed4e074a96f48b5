// The program itself, on an engine whose results are known by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/npy/array_file.h"
#include "tests/apps/run_program.h"
#include "tests/apps/small_engine.h"

namespace kiln::testing {
namespace {

template <class T>
npy::Array array_of(const char* name, DType dtype, Shape shape, std::vector<T> values) {
  return {name, {dtype, std::move(shape)}, false, shared_bytes(values)};
}

class EngineRun : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto written = write_engine(small_plan(), engine_);
    ASSERT_TRUE(written.ok()) << written.error().message;
    write("x.npz", {array_of<float>("x", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6}),
                    array_of<int32_t>("steps", DType::kI32, {2}, {7, 8})});
    write("y.npz", {array_of<float>("y", DType::kF32, {3, 2}, {3, 7, 7, 13, 11, 19}),
                    array_of<int32_t>("echo", DType::kI32, {2}, {7, 8})});
  }

  void write(const char* name, std::vector<npy::Array> arrays) {
    ASSERT_TRUE(npy::write_npz(folder_ / name, arrays).ok());
  }

  ProgramResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), engine_);
    return run_program("engine-run", arguments);
  }

  ScratchFolder folder_;
  std::string engine_ = folder_ / "m.engine";
};

TEST_F(EngineRun, WritesOutputs) {
  const auto result = run({"--inputs", folder_ / "x.npz", "--outputs", folder_ / "out.npz"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("b4: 3 rows, the other 1 of the bucket are padding"), std::string::npos)
      << result.out;
  const auto outputs = npy::read_arrays(folder_ / "out.npz");
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].name, "y");
  EXPECT_EQ((*outputs)[0].type, (TensorType{DType::kF32, {3, 2}}));
  std::vector<float> y(6);
  std::memcpy(y.data(), (*outputs)[0].data.data(), 24);
  EXPECT_EQ(y, (std::vector<float>{3, 7, 7, 13, 11, 19}));
}

TEST_F(EngineRun, ComparesWithReference) {
  const auto right = run({"--inputs", folder_ / "x.npz", "--reference", folder_ / "y.npz"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  write("wrong.npz", {array_of<float>("y", DType::kF32, {3, 2}, {3, 7, 7, 13, 11, 20}),
                      array_of<int32_t>("echo", DType::kI32, {2}, {7, 8})});
  const auto wrong = run({"--inputs", folder_ / "x.npz", "--reference", folder_ / "wrong.npz"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.out.find("WRONG    y: max error 1 abs"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("worst element [2, 1]: 19, expected 20; 1 of 6"), std::string::npos)
      << wrong.out;
  EXPECT_NE(wrong.err.find("differ from the reference"), std::string::npos);
  EXPECT_EQ(
      run({"--inputs", folder_ / "x.npz", "--reference", folder_ / "wrong.npz", "--cosine", "0.99"})
          .exit_code,
      0);
  EXPECT_EQ(
      run({"--inputs", folder_ / "x.npz", "--reference", folder_ / "wrong.npz", "--rtol", "0.06"})
          .exit_code,
      0);
}

TEST_F(EngineRun, HasNoFigureForNan) {
  write("nan.npz", {array_of<float>("x", DType::kF32, {1, 2}, {NAN, 2}),
                    array_of<int32_t>("steps", DType::kI32, {2}, {7, 8})});
  write("one.npz", {array_of<float>("y", DType::kF32, {1, 2}, {3, 7}),
                    array_of<int32_t>("echo", DType::kI32, {2}, {7, 0})});
  const std::vector<std::string> flags = {"--inputs", folder_ / "nan.npz", "--reference",
                                          folder_ / "one.npz"};
  const auto text = run(flags);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.out.find("y: max error inf abs, inf rel"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("echo: max error 8 abs, inf rel"), std::string::npos) << text.out;
  auto for_json = flags;
  for_json.push_back("--json");
  const auto json = nlohmann::json::parse(run(for_json).out);
  const auto &y = json["comparisons"][0], &echo = json["comparisons"][1];
  EXPECT_EQ(y["wrong_elements"], 1);
  EXPECT_TRUE(y["max_abs_error"].is_null());
  EXPECT_TRUE(y["max_rel_error"].is_null());
  EXPECT_EQ(echo["max_abs_error"], 8);
  EXPECT_TRUE(echo["max_rel_error"].is_null());
}

TEST_F(EngineRun, TakesSingleArraysByNameAndByFile) {
  ASSERT_TRUE(
      npy::write_npy(folder_ / "any.npy", array_of<float>("", DType::kF32, {1, 2}, {1, 2})).ok());
  ASSERT_TRUE(
      npy::write_npy(folder_ / "steps.npy", array_of<int32_t>("", DType::kI32, {2}, {7, 8})).ok());
  const auto result = run({"--input", "x=" + (folder_ / "any.npy").string(), "--inputs",
                           folder_ / "steps.npy", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["point"], "b1");
}

TEST_F(EngineRun, RandomInputsFollowSeedAndRange) {
  const auto once = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--outputs", folder_ / "out.npz", "--batch", "4"});
    const auto result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_text(folder_ / "out.npz");
  };
  const std::string first = once({"--seed", "3"});
  EXPECT_EQ(once({"--seed", "3"}), first);
  EXPECT_NE(once({"--seed", "4"}), first);
  once({"--range", "x=10:11", "--range", "steps=-5:-5"});
  const auto outputs = npy::read_arrays(folder_ / "out.npz");
  ASSERT_TRUE(outputs.ok());
  std::vector<float> y(8);
  std::memcpy(y.data(), (*outputs)[0].data.data(), 32);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_GE(y[i], i % 2 == 0 ? 21 : 31);
    EXPECT_LE(y[i], i % 2 == 0 ? 23 : 34);
  }
  std::vector<int32_t> steps(2);
  std::memcpy(steps.data(), (*outputs)[1].data.data(), 8);
  EXPECT_EQ(steps, (std::vector<int32_t>{-5, -5}));
}

TEST_F(EngineRun, MeasuresAndPrintsJson) {
  const auto result = run({"--batch", "3", "--benchmark", "--duration", "0.05", "--warmup", "5",
                           "--iterations", "200", "--threads", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  const auto& figures = json["benchmark"];
  EXPECT_GE(figures["queries"], 200);
  EXPECT_GE(figures["wall_s"], 0.05);
  EXPECT_EQ(figures["threads"], 2);
  EXPECT_NEAR(figures["samples_per_s"].get<double>(), 3 * figures["queries_per_s"].get<double>(),
              1e-3);
  EXPECT_NEAR(figures["queries_per_s"].get<double>() * figures["wall_s"].get<double>(),
              figures["queries"].get<double>(), 1e-6 * figures["queries"].get<double>());
  const auto& latency = figures["latency_ms"];
  EXPECT_GT(latency["min"], 0);
  EXPECT_LE(latency["min"], latency["median"]);
  EXPECT_LE(latency["median"], latency["p90"]);
  EXPECT_LE(latency["p90"], latency["p99"]);
  EXPECT_LE(latency["p99"], latency["max"]);
  EXPECT_FALSE(figures.contains("device_ms"));  // the host target has no such time
  EXPECT_EQ(json["bucket"], 4);
}

TEST_F(EngineRun, WarnsOfTooFewQueries) {
  const auto result = run({"--benchmark", "--duration", "0", "--warmup", "0", "--iterations", "2"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("warning: only 2 queries were measured"), std::string::npos)
      << result.err;
}

TEST_F(EngineRun, TellsWhatIsWrongWithInputs) {
  write("missing.npz", {array_of<float>("x", DType::kF32, {1, 2}, {1, 2}),
                        array_of<float>("label", DType::kF32, {1}, {1})});
  const auto missing = run({"--inputs", folder_ / "missing.npz"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("no array for input 'steps'"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("array 'label' is no input of the engine"), std::string::npos)
      << missing.err;
  write("type.npz", {array_of<double>("x", DType::kF64, {1, 2}, {1, 2}),
                     array_of<int32_t>("steps", DType::kI32, {2}, {7, 8})});
  const auto type = run({"--inputs", folder_ / "type.npz"});
  EXPECT_EQ(type.exit_code, 1);
  EXPECT_NE(type.err.find("'x' is f64[1x2], expected f32[Bx2]"), std::string::npos) << type.err;
  EXPECT_NE(run({"--batch", "5"}).err.find("no bucket holds so many rows"), std::string::npos);
  EXPECT_NE(run({"--shape-point", "b7"}).err.find("no shape point 'b7', the points are 'b1', 'b4'"),
            std::string::npos);
  EXPECT_NE(run({"--range", "z=0:1"}).err.find("no input 'z', the inputs are 'x', 'steps'"),
            std::string::npos);
}

TEST_F(EngineRun, ExitCodeOfBadCommandLines) {
  EXPECT_EQ(run_program("engine-run", {}).exit_code, 2);
  EXPECT_EQ(run({"--nonsense"}).exit_code, 2);
  EXPECT_EQ(run({"--range", "x=3"}).exit_code, 2);
  EXPECT_EQ(run({"--input", "x"}).exit_code, 2);
  EXPECT_EQ(run({"--threads", "2"}).exit_code, 2);
  EXPECT_EQ(run({"--rtol", "1"}).exit_code, 2);
  EXPECT_EQ(run({"--inputs", folder_ / "x.npz", "--batch", "2"}).exit_code, 2);
  EXPECT_EQ(run({"--seed", "-1"}).exit_code, 2);
  EXPECT_EQ(run({"--inputs", folder_ / "x.npz", "--outputs", folder_ / "x.npz"}).exit_code, 2);
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  // Its words are right, and the folder may be there tomorrow.
  EXPECT_EQ(run({"--outputs", folder_ / "absent" / "y.npz"}).exit_code, 1);
}

TEST_F(EngineRun, NamesTheFlagThatIsMeant) {
  EXPECT_NE(run({"--benchmrk"})
                .err.find("found '--benchmrk', which belongs to no option; did you mean "
                          "--benchmark?"),
            std::string::npos);
  EXPECT_NE(run({"--bench"}).err.find("did you mean --benchmark?"), std::string::npos);
  EXPECT_EQ(run({"--zzz"}).err.find("did you mean"), std::string::npos);
  // The engine is missing too, but that is not what was mistyped.
  const auto typed = run_program("engine-run", {"--jsn"});
  EXPECT_NE(typed.err.find("did you mean --json?"), std::string::npos) << typed.err;
}

TEST_F(EngineRun, PrintsNoControlCharacters) {
  const auto result = run_program("engine-run", {"no\x1b[31m.engine"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("'no\\x1b[31m.engine'"), std::string::npos) << result.err;
}

TEST_F(EngineRun, RefusesDamagedMissingAndUnverifiedEngines) {
  const auto missing = run_program("engine-run", {folder_ / "none.engine"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("none.engine': no such file"), std::string::npos) << missing.err;
  const auto other = run_program("engine-run", {folder_ / "x.npz"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("x.npz"), std::string::npos) << other.err;
  plan::Plan plan = small_plan();
  plan.origin.verified = false;
  ASSERT_TRUE(write_engine(plan, engine_).ok());
  const auto unverified = run({});
  EXPECT_EQ(unverified.exit_code, 1);
  EXPECT_NE(unverified.err.find("or take the risk with --allow-unverified ("), std::string::npos)
      << unverified.err;
  EXPECT_EQ(run({"--allow-unverified"}).exit_code, 0);
  plan = small_plan();
  plan.plugins = {{"com.example.X", "1"}};
  ASSERT_TRUE(write_engine(plan, engine_).ok());
  const auto plugin = run({});
  EXPECT_EQ(plugin.exit_code, 1);
  EXPECT_NE(plugin.err.find("give its library with --plugin ("), std::string::npos) << plugin.err;
}

}  // namespace
}  // namespace kiln::testing
