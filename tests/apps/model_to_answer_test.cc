// The three programs in a row, as a user runs them: a model made by the onnx package, answers by
// ONNX Runtime.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/apps/run_program.h"

namespace kiln::testing {
namespace {

// y = softmax(relu(x w + b)) of x f32[batch, 6]; z = reshape(x, s) where shapes depend on s.
constexpr const char* kMakeModels = R"(
import sys
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper as h, numpy_helper as nh

folder = sys.argv[1] + "/"
rng = np.random.default_rng(1)
w, b = rng.normal(size=(6, 4)).astype("f"), rng.normal(size=4).astype("f")
x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])
y = h.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
nodes = [h.make_node("MatMul", ["x", "w"], ["m"], "m"), h.make_node("Add", ["m", "b"], ["a"], "a"),
         h.make_node("Relu", ["a"], ["r"], "r"), h.make_node("Softmax", ["r"], ["y"], "s", axis=-1)]
graph = h.make_graph(nodes, "g", [x], [y], [nh.from_array(w, "w"), nh.from_array(b, "b")])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder + "m.onnx")
data = rng.normal(size=(5, 6)).astype("f")
np.savez(folder + "x.npz", x=data)
session = onnxruntime.InferenceSession(folder + "m.onnx")
np.savez(folder + "y.npz", y=session.run(None, {"x": data})[0])
np.savez(folder + "other.npz", x=rng.normal(size=(5, 7)).astype("f"))

x = h.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])
s = h.make_tensor_value_info("s", TensorProto.INT64, [2])
z = h.make_tensor_value_info("z", TensorProto.FLOAT, None)
graph = h.make_graph([h.make_node("Reshape", ["x", "s"], ["z"], "reshape")], "g", [x, s], [z])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder + "shaped.onnx")
np.savez(folder + "s.npz", s=np.array([3, 4], np.int64))
np.savez(folder + "shaped_y.npz", z=np.arange(12, dtype="f").reshape(3, 4))
np.savez(folder + "shaped_x.npz", x=np.arange(12, dtype="f").reshape(2, 6), s=np.array([3, 4]))
np.savez(folder + "shaped_2.npz", x=np.arange(12, dtype="f").reshape(2, 6), s=np.array([4, 3]))

# z = x / n of n rows: the size of the batch is part of the result.
x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])
outputs = [h.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 6]),
           h.make_tensor_value_info("ones", TensorProto.FLOAT, ["n", 6]),
           h.make_tensor_value_info("shape", TensorProto.INT64, [2])]
nodes = [h.make_node("Shape", ["x"], ["shape"]),
         h.make_node("ConstantOfShape", ["shape"], ["ones"],
                     value=nh.from_array(np.ones(1, "f"))),
         h.make_node("Shape", ["x"], ["size"], start=0, end=1),
         h.make_node("Cast", ["size"], ["count"], to=TensorProto.FLOAT),
         h.make_node("Div", ["x", "count"], ["z"], "mean")]
graph = h.make_graph(nodes, "g", [x], outputs)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder + "sized.onnx")
session = onnxruntime.InferenceSession(folder + "sized.onnx")
for rows in (1, 4):
    answers = session.run(None, {"x": data[:rows]})
    np.savez(folder + f"sized_x{rows}.npz", x=data[:rows])
    np.savez(folder + f"sized_y{rows}.npz", **dict(zip(("z", "ones", "shape"), answers)))

# "cancels" leaves differences of 1 in 400 to be seen, which 8 bits lose; "robust" is a plain product.
x = h.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])
outputs = [h.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 2]) for n in ("y", "z")]
near = np.array([[100.25, 100], [-100, -100.25]], "f")
weights = {"ones": np.ones((6, 2), "f"), "near": near, "plain": rng.normal(size=(6, 2)).astype("f")}
nodes = [h.make_node("MatMul", ["x", "ones"], ["sum"], "sum"),
         h.make_node("MatMul", ["sum", "near"], ["y"], "cancels"),
         h.make_node("MatMul", ["x", "plain"], ["z"], "robust")]
graph = h.make_graph(nodes, "g", [x], outputs, [nh.from_array(v, n) for n, v in weights.items()])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder + "sensitive.onnx")
session = onnxruntime.InferenceSession(folder + "sensitive.onnx")
np.savez(folder + "sensitive_y.npz", **dict(zip("yz", session.run(None, {"x": data}))))
)";

class ModelToAnswer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ScratchFolder;
    std::ofstream(*folder_ / "make.py") << kMakeModels;
    const auto made = run_program(python(), {*folder_ / "make.py", *folder_ / ""});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string path(const std::string& name) { return *folder_ / name; }

  static ProgramResult build(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", path("m.engine"), "--target", "host"});
    return run_program("engine-build", arguments);
  }

  static ScratchFolder* folder_;
};
ScratchFolder* ModelToAnswer::folder_ = nullptr;

TEST_F(ModelToAnswer, AgreesWithOnnxRuntime) {
  const auto built = build({"--onnx", path("m.onnx"), "--batches", "1,4,8", "--verify-data",
                            path("x.npz"), "--report", path("report.json")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("verify data 'x.npz'"), std::string::npos) << built.out;
  const auto report = nlohmann::json::parse(read_text(path("report.json")));
  EXPECT_EQ(report["kind"], "kiln-build-report");
  // Five rows in buckets of 1, 4 and 8, each filled to its end.
  const int runs[] = {5, 2, 1}, rows[] = {1, 4, 8};
  for (size_t i = 0; i < 3; ++i) {
    int seen = 0;
    for (const auto& check : report["points"][i]["verification"]) {
      if (check["what"] != "verify data 'x.npz'") continue;
      ++seen;
      EXPECT_EQ(check["rows"], rows[i]);
      EXPECT_EQ(check["passed"], true);
    }
    EXPECT_EQ(seen, runs[i]);
  }

  const auto ran = run_program("engine-run", {path("m.engine"), "--inputs", path("x.npz"),
                                              "--reference", path("y.npz"), "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const auto outcome = nlohmann::json::parse(ran.out);
  EXPECT_EQ(outcome["rows"], 5);
  EXPECT_EQ(outcome["bucket"], 8);
  EXPECT_EQ(outcome["comparisons"][0]["elements"], 20);

  const auto seen = run_program("engine-inspect", {path("m.engine"), "--json", "--steps"});
  ASSERT_EQ(seen.exit_code, 0) << seen.err;
  const auto engine = nlohmann::json::parse(seen.out);
  EXPECT_EQ(engine["origin"]["verified"], true);
  const std::string model = read_text(path("m.onnx"));
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016lx", XXH3_64bits(model.data(), model.size()));
  EXPECT_EQ(engine["origin"]["model_hash"], hash);
  EXPECT_EQ(engine["report"]["build"]["model_hash"], hash);
  EXPECT_EQ(engine["points"].size(), 3u);
  EXPECT_FALSE(engine["points"][0]["steps"].empty());
  EXPECT_EQ(engine["report"]["points"].size(), 3u);
}

TEST_F(ModelToAnswer, KeepsInF32WhatHalfPrecisionWouldHarm) {
  const auto built = build({"--onnx", path("sensitive.onnx"), "--batches", "1,8", "--bf16",
                            "--report", path("report.json"), "--explain"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("bf16 -> f32: sensitive: narrow alone it takes"), std::string::npos)
      << built.out;
  const auto report = nlohmann::json::parse(read_text(path("report.json")));
  int met = 0;
  for (const auto& point : report["points"]) {
    for (const auto& region : point["regions"]) {
      met += region["name"] == "cancels" || region["name"] == "robust";
      if (region["name"] == "cancels") {
        EXPECT_EQ(region["precision_realised"], "f32");
        EXPECT_GT(region["precision_damage"], 1e-3);
      } else if (region["name"] == "robust") {
        EXPECT_EQ(region["precision_realised"], "bf16");
        EXPECT_LT(region["precision_damage"], 1e-4);
      }
    }
  }
  EXPECT_EQ(met, 4);
  const auto ran =
      run_program("engine-run", {path("m.engine"), "--inputs", path("x.npz"), "--reference",
                                 path("sensitive_y.npz"), "--cosine", "0.999"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
}

TEST_F(ModelToAnswer, SaysThatTheHostHasNoTf32) {
  const auto built = build(
      {"--onnx", path("m.onnx"), "--batches", "4", "--tf32", "--report", path("report.json")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("note: --tf32: target host computes in f32"), std::string::npos);
  const auto report = nlohmann::json::parse(read_text(path("report.json")));
  EXPECT_EQ(report["build"]["precision"], "tf32");
  int products = 0;
  for (const auto& region : report["points"][0]["regions"]) {
    EXPECT_EQ(region["precision_realised"], "f32");
    products += region["precision_asked"] == "tf32";
  }
  EXPECT_EQ(products, 1);
  const auto seen = run_program("engine-inspect", {path("m.engine"), "--json"});
  EXPECT_EQ(nlohmann::json::parse(seen.out)["origin"]["precision"], "tf32");
  const auto two = build({"--onnx", path("m.onnx"), "--tf32", "--fp16"});
  EXPECT_EQ(two.exit_code, 2) << two.err;
}

TEST_F(ModelToAnswer, BuildsAModelThatComputesWithTheSizeOfTheBatch) {
  const auto built = build({"--onnx", path("sized.onnx"), "--batches", "1,4"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  for (const char* rows : {"1", "4"}) {
    const auto ran = run_program(
        "engine-run", {path("m.engine"), "--inputs", path(std::string("sized_x") + rows + ".npz"),
                       "--reference", path(std::string("sized_y") + rows + ".npz")});
    EXPECT_EQ(ran.exit_code, 0) << rows << " rows: " << ran.out << ran.err;
  }
  const auto padded = run_program("engine-run", {path("m.engine"), "--batch", "3"});
  EXPECT_EQ(padded.exit_code, 1);
  EXPECT_NE(padded.err.find("on the size of the batch"), std::string::npos) << padded.err;
}

TEST_F(ModelToAnswer, RefusesCommandLinesThatMeanNothing) {
  const std::vector<std::string> wrong[] = {{"--batches", ""},
                                            {"--batches", "1,,2"},
                                            {"--stop-after", "-5"},
                                            {"--seed", "1"},
                                            {"--max-batch", "4", "--batches", "1"},
                                            {"--fp16", "--bf16"}};
  for (auto flags : wrong) {
    flags.insert(flags.end(), {"--onnx", path("m.onnx")});
    EXPECT_EQ(build(flags).exit_code, 2) << flags[0] << " " << flags[1];
  }
  const auto typed = build({"--onxn", path("m.onnx")});
  EXPECT_NE(typed.err.find("did you mean --onnx?"), std::string::npos) << typed.err;
}

TEST_F(ModelToAnswer, RefusesVerifyDataThatFitsNothing) {
  const auto built =
      build({"--onnx", path("m.onnx"), "--batches", "1", "--verify-data", path("other.npz")});
  EXPECT_NE(built.exit_code, 0);
  EXPECT_NE(built.err.find("other.npz': array 'x' is f32[5x7]"), std::string::npos) << built.err;
  const auto missing =
      build({"--onnx", path("m.onnx"), "--batches", "1", "--verify-data", path("none.npz")});
  EXPECT_NE(missing.err.find("none.npz': no such file"), std::string::npos) << missing.err;
}

TEST_F(ModelToAnswer, SpecialisesOnShapeValues) {
  const auto unknown = build({"--onnx", path("shaped.onnx")});
  EXPECT_NE(unknown.exit_code, 0);
  EXPECT_NE(unknown.err.find("'s'"), std::string::npos) << unknown.err;
  const auto built = build({"--onnx", path("shaped.onnx"), "--shape-values", path("s.npz")});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const auto ran = run_program("engine-run", {path("m.engine"), "--inputs", path("shaped_x.npz"),
                                              "--reference", path("shaped_y.npz")});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const auto random = run_program("engine-run", {path("m.engine")});
  EXPECT_EQ(random.exit_code, 0) << random.err;
  const auto other =
      run_program("engine-run", {path("m.engine"), "--inputs", path("shaped_2.npz")});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("input 's' has another value than the engine was built for"),
            std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace kiln::testing
