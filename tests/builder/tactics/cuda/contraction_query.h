// Contraction and convolution regions from their text, as tactics for a GPU that is elsewhere are
// asked about them.
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "builder/cuda/build_tools.h"
#include "builder/cuda/kernel_compiler.h"
#include "builder/tactics/tactic.h"

namespace kiln::test {

class ContractionQuery : public ::testing::Test {
 protected:
  using Candidates = std::vector<Tactic> (*)(const TacticQuery& query, std::string& refusal);

  void SetUp() override {
    tools_.compiler = std::make_shared<KernelCompiler>(90);
    device_.multiprocessors = 132;
    device_.compute_capability = 90;
  }

  // Nodes need no names here. Input 1 is a constant.
  TacticQuery query(const std::string& text,
                    ir::Region::Kind kind = ir::Region::Kind::kContraction) {
    std::istringstream lines(text);
    std::string named;
    for (std::string line; std::getline(lines, line);) {
      named += line + (line.starts_with("  %") ? " ; \"n\"\n" : "\n");
    }
    auto body = ir::parse_text(named);
    EXPECT_TRUE(body.ok()) << body.error().message;
    region_ = {kind, std::make_shared<ir::Graph>(*std::move(body)), {}, ""};
    TacticQuery query{region_, {}, {}, {}, device_, {}, &tools_};
    for (ir::ValueId id : region_.body->inputs()) query.inputs.push_back(region_.body->type(id));
    for (ir::ValueId id : region_.body->outputs()) query.outputs.push_back(region_.body->type(id));
    query.constants.resize(query.inputs.size());
    query.constants[1] = SharedBytes{};
    return query;
  }

  std::string refusal(Candidates candidates, const std::string& text) {
    std::string why;
    EXPECT_TRUE(candidates(query(text), why).empty());
    return why;
  }

  CudaTools tools_;
  DeviceInfo device_;
  ir::Region region_;
};

inline std::string product(const std::string& a, const std::string& b, const std::string& d,
                           int ta = 0, int tb = 1) {
  return "graph {\n  input %0 : " + a + " \"a\"\n  input %1 : " + b +
         " \"b\"\n  %2 = matmul{transpose_a=" + std::to_string(ta) +
         ", transpose_b=" + std::to_string(tb) + "}(%0, %1) : " + d + "\n  output %2 \"d\"\n}";
}

// Gate and up, each 40 columns of one f16 product, of which results of `type` are made.
inline std::string gated(int64_t rows, const std::string& type) {
  const std::string m = std::to_string(rows), narrow = "f16[" + m + "x40]";
  const auto half = [&](int start) {
    return "slice{sizes=[" + m + ", 40], starts=[0, " + std::to_string(start) +
           "], steps=[1, 1]}(%2) : " + narrow + "\n";
  };
  std::string text = "graph {\n  input %0 : f16[" + m +
                     "x64] \"x\"\n  input %1 : f16[80x64] \"w\"\n"
                     "  %2 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : f16[" +
                     m + "x80]\n  %3 = " + half(0) + "  %4 = " + half(40) +
                     "  %5 = sigmoid(%3) : " + narrow + "\n  %6 = mul(%3, %5) : " + narrow +
                     "\n  %7 = mul(%6, %4) : " + narrow + "\n";
  if (type == "f16") return text + "  output %7 \"y\"\n}";
  return text + "  %8 = cast{saturate=1, to=\"" + type + "\"}(%7) : " + type + "[" + m +
         "x40]\n  output %8 \"y\"\n}";
}

}  // namespace kiln::test
