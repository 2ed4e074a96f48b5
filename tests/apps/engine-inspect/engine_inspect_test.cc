// The program itself, on engines made by hand.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/report/report.h"
#include "tests/apps/run_program.h"
#include "tests/apps/small_engine.h"

namespace kiln::testing {
namespace {

class EngineInspect : public ::testing::Test {
 protected:
  ProgramResult inspect(const plan::Plan& plan, std::vector<std::string> arguments) {
    const auto written = write_engine(plan, engine_);
    EXPECT_TRUE(written.ok()) << written.error().message;
    arguments.insert(arguments.begin(), engine_);
    return run_program("engine-inspect", arguments);
  }

  void expect_lines(const std::string& text, std::vector<std::string> lines) {
    for (const std::string& line : lines) {
      EXPECT_NE(text.find(line), std::string::npos) << "no '" << line << "' in\n" << text;
    }
  }

  ScratchFolder folder_;
  std::string engine_ = folder_ / "m.engine";
};

TEST_F(EngineInspect, ShowsWhatTheEngineIs) {
  const auto result = inspect(small_plan(), {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_lines(result.out, {"fixture.onnx", "target     host (a CPU)", "precision  fp32",
                            "verified   yes", "x      f32[Bx2]", "steps  i32[2]", "b4",
                            "constants: 2, weights 68 B", "8 B  scale"});
  EXPECT_EQ(result.out.find("steps of point"), std::string::npos);
}

TEST_F(EngineInspect, SaysThatAnEngineIsNotVerified) {
  plan::Plan plan = small_plan();
  plan.origin.verified = false;
  plan.batch_padding = false;
  plan.batch_padding_reason = "node 'mean' mixes rows";
  expect_lines(inspect(plan, {}).out, {"verified   NO: refused until engine-build --verify-engine",
                                       "padding    no: node 'mean' mixes rows"});
}

TEST_F(EngineInspect, ShowsStepsOfEveryKind) {
  const auto result = inspect(affine_plan({1, 8}), {"--steps", "--point", "b8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_lines(result.out,
               {"steps of point b8", "host scale{factor=2.0}  x f32[8x4] -> @0 f32[8x4]  [double]",
                "repeat the next 1 steps, three times  [loop]",
                "  host scale{factor=2.0}  @0 f32[8x4] -> @0 f32[8x4]  [loop]",
                "branch if yes: the next 1 steps, else the 1 after them  [choose]",
                "copy @128 -> y, 128 B  [out]"});
  EXPECT_EQ(result.out.find("steps of point b1"), std::string::npos);
}

TEST_F(EngineInspect, DrawsTheArena) {
  const auto result = inspect(affine_plan({8}), {"--memory"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_lines(result.out, {"memory of point b8: arena 320 B, 1.000 times its lower bound of 320 B",
                            "most bytes live at step", "live tenths", "from double"});
}

TEST_F(EngineInspect, PrintsTheReport) {
  plan::Plan plan = small_plan();
  report::Report report;
  report.build.kiln_version = "0.1.0";
  report.build.model_name = "fixture.onnx";
  report::Region region;
  region.name = "scale_x";
  region.candidates = {{"loop", "rows", 9.5, 0.1, 0, 0, 0, report::Verdict::kSlower, "too slow"}};
  report.points = {{.name = "b1", .regions = {region}}, {.name = "b4"}};
  plan.report_json = report::to_json(report);
  const auto result = inspect(plan, {"--report", "--explain", "--point", "b1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_lines(result.out, {"point b1: 1 regions", "scale_x", "rows: too slow"});
  EXPECT_EQ(result.out.find("point b4:"), std::string::npos);
  const auto json = nlohmann::json::parse(inspect(plan, {"--json"}).out);
  EXPECT_EQ(json["report"]["kind"], "kiln-build-report");
}

// The reports in a page, as JSON.
nlohmann::json reports_of(const std::string& page) {
  const std::string open = "id=\"reports\">";
  const size_t from = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST_F(EngineInspect, WritesTheReportAsAPage) {
  plan::Plan plan = small_plan();
  report::Report report;
  report.build.model_name = "</script>";
  report.points = {{.name = "b1"}, {.name = "b4"}};
  plan.report_json = report::to_json(report);
  const std::string page = folder_ / "m.html", json = folder_ / "r.json";
  const auto one = inspect(plan, {"--html", page});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  auto reports = reports_of(read_text(page));
  ASSERT_EQ(reports.size(), 1);
  EXPECT_EQ(reports[0]["file"], engine_);
  EXPECT_EQ(reports[0]["report"], nlohmann::json::parse(plan.report_json));

  report.build.precision = "bf16";
  std::ofstream(json) << report::to_json(report);
  const auto two = inspect(plan, {json, "--html", page, "--point", "b4"});
  ASSERT_EQ(two.exit_code, 0) << two.err;
  reports = reports_of(read_text(page));
  ASSERT_EQ(reports.size(), 2);
  EXPECT_EQ(reports[1]["report"]["build"]["precision"], "bf16");
  EXPECT_EQ(reports[1]["report"]["points"].size(), 1);
  EXPECT_EQ(reports[1]["report"]["points"][0]["name"], "b4");
}

TEST_F(EngineInspect, RefusesPagesOfNothing) {
  const std::string page = folder_ / "m.html";
  const auto without = inspect(small_plan(), {"--html", page});
  EXPECT_EQ(without.exit_code, 1);
  expect_lines(without.err, {"m.engine' holds no report of its build"});
  plan::Plan plan = small_plan();
  plan.report_json = report::to_json({});
  expect_lines(inspect(plan, {"--html", engine_}).err, {"is the file that it would be made of"});
  expect_lines(inspect(plan, {"--html", page, "--point", "b9"}).err, {"has no shape point 'b9'"});
  EXPECT_EQ(inspect(plan, {engine_}).exit_code, 2);
  EXPECT_EQ(inspect(plan, {"--html", page, "--steps"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(page));
}

TEST_F(EngineInspect, LeavesOutAReportThatNestsTooDeep) {
  plan::Plan plan = small_plan();
  plan.report_json = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto result = inspect(plan, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::parse(result.out)["report"].is_null());
}

TEST_F(EngineInspect, PrintsJson) {
  const auto result = inspect(small_plan(), {"--json", "--steps", "--memory"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["origin"]["target"], "host");
  EXPECT_EQ(json["points"][1]["inputs"][0]["shape"], (std::vector<int>{4, 2}));
  const auto& step = json["points"][1]["steps"][0];
  EXPECT_EQ(step["kind"], "host");
  EXPECT_EQ(step["operation"], "mul");
  EXPECT_EQ(step["outputs"][0]["space"], "arena");
  EXPECT_EQ(json["points"][1]["arena_buffers"][0]["bytes"], 32);
  EXPECT_EQ(json["constants"][0]["name"], "scale");
}

TEST_F(EngineInspect, TellsWhatIsWrong) {
  const auto point = inspect(small_plan(), {"--point", "b9"});
  EXPECT_EQ(point.exit_code, 1);
  expect_lines(point.err, {"no shape point 'b9', the points are 'b1', 'b4'"});
  EXPECT_EQ(run_program("engine-inspect", {}).exit_code, 2);
  EXPECT_EQ(inspect(small_plan(), {"--nonsense"}).exit_code, 2);
  EXPECT_EQ(inspect(small_plan(), {"--explain"}).exit_code, 2);
  EXPECT_EQ(inspect(small_plan(), {"--help"}).exit_code, 0);
  const auto missing = run_program("engine-inspect", {folder_ / "none"});
  EXPECT_EQ(missing.exit_code, 1);
  expect_lines(missing.err, {"none': no such file or directory"});
  std::ofstream(folder_ / "text") << "this is no engine, but it is long enough to be one "
                                  << std::string(400, '.');
  const auto text = run_program("engine-inspect", {folder_ / "text"});
  EXPECT_EQ(text.exit_code, 1);
  expect_lines(text.err, {"text'"});
}

TEST_F(EngineInspect, FindsDamage) {
  ASSERT_TRUE(write_engine(small_plan(), engine_).ok());
  std::string bytes = read_text(engine_);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);  // in the weights
  std::ofstream(engine_, std::ios::binary) << bytes;
  const auto result = run_program("engine-inspect", {engine_});
  EXPECT_EQ(result.exit_code, 1);
  expect_lines(result.err, {"weights", "checksum"});
}

}  // namespace
}  // namespace kiln::testing
