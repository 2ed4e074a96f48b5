#include "formats/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/report/table.h"

namespace kiln::report {
namespace {

Report full_report() {
  Region region;
  region.name = "gemm_1+gelu";
  region.origins = {"/mlp/MatMul", "/mlp/Gelu"};
  region.kind = "contraction";
  region.rule = "contraction-epilogue";
  region.types = {"f32[8x768]", "f32[768x3072]", "->", "f32[8x3072]"};
  region.precision_asked = "fp16";
  region.precision_realised = "fp32";
  region.precision_reason = "weight holds 70000, above f16's largest";
  region.bytes_read = 9461760;
  region.bytes_written = 98304;
  region.flops = 37748736;
  region.candidates = {
      {"onednn", "matmul+gelu_erf", 120.5, 1.5, 1e-6, 1e-5, 4096, Verdict::kChosen, ""},
      {"loop", "naive", 9000, 10, 0, 0, 0, Verdict::kSlower, "75 times slower"},
      {"plain", "blocked", 0, 0, 3, 2, 0, Verdict::kWrong, "row 3 is off by 3"}};
  region.refusals = {{"onednn-conv", "not a convolution"}};
  region.chosen = 0;
  region.time_share = 1;
  Point point;
  point.name = "b8";
  point.batch = 8;
  point.sum_us = 120.5;
  point.regions = {region};
  point.near_misses = {{"gelu", "softmax", "pointwise-reduce", "two reduced axes"}};
  point.passes = {{"fold-constants", true, 12}};
  point.memory = {65536, 65536, 4096, {{"gemm_1+gelu", 128, 98304, 0, 3, "x"}}};
  point.verification = {{"random rows", 8, 1e-5, 1e-6, 0.999999, true, "output 'y', row 2"}};
  point.precision = {{"fp32", 1, 37748736, 9560064}};
  Report report;
  report.build = {"0.1.0",
                  "m.onnx",
                  "00ff",
                  "host",
                  "a CPU",
                  "",
                  {},
                  "fp16",
                  {"fuse-attention"},
                  {{"onednn", "2.6"}},
                  true};
  report.points = {point};
  report.weights_bytes = 9437184;
  report.notes = {"timing cache 't.json' is damaged and was ignored"};
  report.stages = {{"import", 0.5}, {"tactics", 12.25}};
  return report;
}

TEST(Report, SurvivesJson) {
  const auto read = from_json(to_json(full_report()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, full_report());
}

TEST(Report, HasTheDocumentedFields) {
  const auto document = nlohmann::json::parse(to_json(full_report()));
  EXPECT_EQ(document["kind"], "kiln-build-report");
  EXPECT_EQ(document["schema"], 1);
  const auto& region = document["points"][0]["regions"][0];
  EXPECT_EQ(region["origins"][1], "/mlp/Gelu");
  EXPECT_EQ(region["candidates"][2]["verdict"], "wrong");
  EXPECT_EQ(document["build"]["versions"][0], nlohmann::json({"onednn", "2.6"}));
  EXPECT_EQ(document["points"][0]["memory"]["buffers"][0]["in_place_of"], "x");
}

TEST(Report, TakesAbsentAndUnknownFields) {
  auto document = nlohmann::json::parse(to_json(full_report()));
  document.erase("stages");
  document["later"] = 1;
  document["points"][0].erase("sum_us");
  const auto read = from_json(document.dump());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->stages.empty());
  EXPECT_EQ(read->points[0].sum_us, 0);
}

TEST(Report, NotFiniteBecomesNull) {
  Report report = full_report();
  report.points[0].regions[0].candidates[2].max_abs_error = INFINITY;
  const std::string text = to_json(report);
  EXPECT_NE(text.find("\"max_abs_error\": null"), std::string::npos);
  EXPECT_TRUE(std::isnan(from_json(text)->points[0].regions[0].candidates[2].max_abs_error));
}

TEST(Report, NamesTheFieldThatIsWrong) {
  auto document = nlohmann::json::parse(to_json(full_report()));
  const auto message = [](const nlohmann::json& value) {
    const auto read = from_json(value.dump());
    return read ? std::string("accepted") : read.error().message;
  };
  auto wrong = document;
  wrong["points"][0]["regions"][0]["candidates"][1]["median_us"] = "fast";
  EXPECT_EQ(message(wrong),
            "report.points[0].regions[0].candidates[1].median_us is string, expected a number or "
            "null");
  wrong = document;
  wrong["points"][0]["regions"][0]["candidates"][0]["verdict"] = "best";
  EXPECT_EQ(message(wrong),
            "report.points[0].regions[0].candidates[0].verdict is string, expected a verdict");
  wrong = document;
  wrong["weights_bytes"] = -1;
  EXPECT_EQ(message(wrong), "report.weights_bytes is number, expected an integer of 0 or more");
  wrong = document;
  wrong["points"] = 3;
  EXPECT_EQ(message(wrong), "report.points is number, expected an array");
  EXPECT_EQ(message("text"), "report is not a JSON object");
}

TEST(Report, RefusesDeepText) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto read = from_json(R"({"kind": )" + deep + "}");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "report nests 1000001 deep, expected at most 64");
}

TEST(Report, RefusesNewerSchemas) {
  const auto read = from_json(R"({"kind": "kiln-build-report", "schema": 2})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kVersionMismatch);
  EXPECT_EQ(read.error().message, "report has schema 2, this library reads 1 to 1; update Kiln");
}

Report gpu_report() {
  Report report = full_report();
  report.build.target = "cuda";
  report.build.device = "NVIDIA H200";
  report.build.compute_capability = "9.0";
  report.build.peak_rates = {4.8e12, 67e12, 494e12, 989e12, 1979e12, "published"};
  report.build.versions = {{"driver for CUDA", "13.0"}, {"cuDNN", "91400"}};
  Point& point = report.points[0];
  point.graph_us = 99.5;
  point.regions[0].roofline_share = 0.424;
  point.regions[0].roofline_bound = "memory";
  Region sort;
  sort.name = "sort_1";
  sort.kind = "opaque";
  sort.host_reason = "'sort' runs on the host: 'sort' has no form as loops";
  point.regions.push_back(sort);
  return report;
}

TEST(Report, OfAGpuSurvivesJson) {
  const auto read = from_json(to_json(gpu_report()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, gpu_report());
}

TEST(ReportTable, ShowsHowWellTheGpuIsUsed) {
  const std::string table = to_table(gpu_report());
  for (const char* part :
       {"compute capability 9.0, 4.80 TB/s, TFLOPS: 67 f32, 494 tf32, 989 f16, 1979 8-bit "
        "(published)",
        "versions: driver for CUDA 13.0, cuDNN 91400", "120.5 us in kernels, 99.5 us as one",
        "  42%m contraction", "onednn matmul+gelu_erf", "sort_1  (host)",
        "on the host: sort_1: 'sort' runs on the host: 'sort' has no form as loops"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
  EXPECT_EQ(to_table(full_report()).find("compute capability"), std::string::npos);
}

TEST(ReportTable, ShowsTheChosenTactic) {
  const std::string table = to_table(full_report());
  EXPECT_NE(table.find("m.onnx for host (a CPU), fp16, verified, weights 9.4 MB"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("point b8: 1 regions, 120.5 us in kernels, arena 65.5 KB (1.00 of its lower "
                       "bound)"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("gemm_1+gelu  [contraction-epilogue]"), std::string::npos) << table;
  EXPECT_EQ(table.find("75 times slower"), std::string::npos) << table;
}

TEST(ReportTable, ExplainsLosersAndNearMisses) {
  const std::string table = to_table(full_report(), {.explain = true, .memory_map = true});
  for (const char* part :
       {"naive: 75 times slower", "WRONG", "refused onednn-conv: not a convolution",
        "not fused: gelu into softmax (pointwise-reduce): two reduced axes", "in place of x",
        "precision fp16 -> fp32: weight holds 70000"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

TEST(ReportTable, ShowsTheSlowestRegions) {
  Report report = full_report();
  Region cheap = report.points[0].regions[0];
  cheap.name = "cheap";
  cheap.time_share = 0.01;
  report.points[0].regions.insert(report.points[0].regions.begin(), cheap);
  const std::string table = to_table(report, {.most_regions = 1});
  EXPECT_EQ(table.find("cheap"), std::string::npos) << table;
  EXPECT_NE(table.find("... and 1 more"), std::string::npos) << table;
}

}  // namespace
}  // namespace kiln::report
