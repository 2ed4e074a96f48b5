// Regions lowered to cuBLASLt, run by a fake one that does what its documentation says, against
// the reference.
#include "builder/tactics/cuda/cublaslt_provider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "builder/cuda/build_tools.h"
#include "builder/tactics/cuda/cublaslt_matmul.h"
#include "engine/cuda/steps/matmul.h"
#include "tests/builder/random_tensors.h"
#include "tests/engine/cuda/fake_cublaslt.h"

namespace kiln {
namespace {

using plan::BufferRef;
using testing::FakeCublasLt;

class CublasLtProvider : public ::testing::Test {
 protected:
  CublasLtProvider() { tools_.device = fake_.device(); }

  // Nodes need no names here.
  ir::Region parse(const std::string& text) {
    std::istringstream lines(text);
    std::string named;
    for (std::string line; std::getline(lines, line);) {
      named += line + (line.starts_with("  %") ? " ; \"n\"\n" : "\n");
    }
    auto graph = ir::parse_text(named);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
    return {ir::Region::Kind::kContraction,
            std::make_shared<const ir::Graph>(std::move(graph).value()),
            {},
            ""};
  }

  TacticQuery query(const ir::Region& region, const std::vector<HostTensor>& inputs) {
    TacticQuery query{region, {}, {}, {}, info_, {}, &tools_};
    for (const HostTensor& input : inputs) {
      query.inputs.push_back(input.type);
      query.constants.push_back(input.bytes);
    }
    for (ir::ValueId output : region.body->outputs()) {
      query.outputs.push_back(region.body->type(output));
    }
    return query;
  }

  // What the first fused candidate makes of the inputs, through the engine's own step.
  HostTensor run(const TacticQuery& query, const std::vector<HostTensor>& inputs) {
    std::string refusal;
    const auto tactics = cublaslt_candidates(query, refusal);
    EXPECT_FALSE(tactics.empty()) << refusal;
    if (tactics.empty() || !tactics[0].key.starts_with("fused/")) {
      ADD_FAILURE() << "is not fused: " << refusal;
      return {};
    }
    const auto lowered = cublaslt_lower(query, tactics[0]);
    EXPECT_TRUE(lowered.ok()) << lowered.error().message;
    const auto& call = std::get<LibraryCall>(lowered->steps.at(0));
    plan::Plan plan;
    const std::string text = encode(call.operation);
    plan.blobs.push_back(
        SharedBytes::take({reinterpret_cast<const std::byte*>(text.data()),
                           reinterpret_cast<const std::byte*>(text.data() + text.size())}));
    alignas(64) static std::byte weights[1 << 16];
    alignas(64) static std::byte arena[1 << 16];
    plan::Matmul step;
    uint64_t offset = 0;
    for (LocalBuffer buffer : call.inputs) {
      const bool input = buffer.kind == LocalBuffer::Kind::kInput;
      const HostTensor& tensor = input ? inputs[buffer.index] : lowered->constants[buffer.index];
      const auto bytes = static_cast<uint64_t>(tensor.type.bytes());
      std::memcpy(weights + offset, tensor.bytes.data(), bytes);
      step.inputs.push_back({{BufferRef::Space::kWeights, 0, offset, bytes}, tensor.type});
      offset += (bytes + 63) / 64 * 64;
      EXPECT_LE(offset, sizeof weights);
    }
    const TensorType& type = query.outputs[0];
    const auto bytes = static_cast<uint64_t>(type.bytes());
    step.outputs.push_back({{BufferRef::Space::kArena, 0, 0, bytes}, type});
    std::memset(arena, 0xff, sizeof arena);
    cuda::ModuleSet modules(tools_.device);
    const auto prepared = prepare_step(step, cuda::DeviceResources{plan, tools_.device, modules});
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    if (!prepared.ok()) return {};
    const Spaces spaces{.arena = arena, .weights = weights};
    EXPECT_TRUE(enqueue_step(*prepared, spaces, nullptr).ok());
    return {type, SharedBytes::take({arena, arena + bytes})};
  }

  void expect_right(const std::string& text, double tolerance) {
    SCOPED_TRACE(text);
    const ir::Region region = parse(text);
    const auto inputs = test::random_inputs(*region.body, 7);
    const HostTensor found = run(query(region, inputs), inputs);
    const auto expected = run_reference(*region.body, inputs);
    ASSERT_TRUE(expected.ok());
    ASSERT_EQ(found.type, expected->at(0).type);
    const auto want = test::to_doubles(expected->at(0)), got = test::to_doubles(found);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
    }
  }

  FakeCublasLt fake_;
  CudaTools tools_;
  DeviceInfo info_;
};

std::string matmul(const std::string& a, const std::string& b, const std::string& d, int ta,
                   int tb) {
  return "graph {\n  input %0 : " + a + " \"a\"\n  input %1 : " + b +
         " \"b\"\n  %2 = matmul{transpose_a=" + std::to_string(ta) +
         ", transpose_b=" + std::to_string(tb) + "}(%0, %1) : " + d + "\n  output %2 \"d\"\n}";
}

TEST_F(CublasLtProvider, MapsRowMajorOperandsOfEveryTypeAndTranspose) {
  for (const auto& [dtype, tolerance] :
       {std::pair{"f32", 1e-5}, {"f64", 1e-12}, {"f16", 4e-3}, {"bf16", 2e-2}}) {
    for (int i = 0; i < 4; ++i) {
      const std::string t = dtype, a = i & 1 ? "[5x3]" : "[3x5]", b = i & 2 ? "[7x5]" : "[5x7]";
      expect_right(matmul(t + a, t + b, t + "[3x7]", i & 1, i >> 1), tolerance);
    }
  }
}

TEST_F(CublasLtProvider, MapsBatchesAndBroadcasts) {
  struct Row {
    const char *a, *b, *d;
    int ta, tb, calls;
  };
  const Row rows[] = {
      {"f32[4x3x5]", "f32[4x5x7]", "f32[4x3x7]", 0, 0, 1},
      {"f32[2x4x3x5]", "f32[2x4x7x5]", "f32[2x4x3x7]", 0, 1, 1},
      {"f32[2x4x3x5]", "f32[5x7]", "f32[2x4x3x7]", 0, 0, 1},  // all rows of one
      {"f32[2x4x5x3]", "f32[5x7]", "f32[2x4x3x7]", 1, 0, 1},  // a stays a batch
      {"f32[3x5]", "f32[4x5x7]", "f32[4x3x7]", 0, 0, 1},      // one a
      {"f32[2x1x3x5]", "f32[1x4x5x7]", "f32[2x4x3x7]", 0, 0, 2},
      {"f32[2x1x3x5]", "f32[2x4x5x7]", "f32[2x4x3x7]", 0, 0, 2},
      {"f32[2x4x3x5]", "f32[2x1x5x7]", "f32[2x4x3x7]", 0, 0, 1},  // 4 merge into rows
      {"f32[1x1x3x5]", "f32[5x7]", "f32[1x1x3x7]", 0, 0, 1},
      {"f32[6x5x1]", "f32[6x5x7]", "f32[6x1x7]", 1, 0, 1},
      {"f32[6x1x5]", "f32[6x1x5]", "f32[6x1x1]", 0, 1, 1},
  };
  for (const Row& row : rows) {
    fake_.matmuls = 0;
    expect_right(matmul(row.a, row.b, row.d, row.ta, row.tb), 1e-5);
    EXPECT_EQ(fake_.matmuls, row.calls) << row.a << " " << row.b;
  }
}

// Lines between the product %2 and the output.
std::string epilogue(const std::string& inputs, const std::string& lines,
                     const std::string& output) {
  return "graph {\n  input %0 : f32[2x3x5] \"a\"\n  input %1 : f32[5x4] \"b\"\n" + inputs +
         "  %2 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f32[2x3x4]\n" + lines +
         "  output " + output + " \"d\"\n}";
}

const std::string kBias = "  input %3 : f32[4] \"bias\"\n";
const std::string kResidual = "  input %4 : f32[2x3x4] \"residual\"\n";
const std::string kAddBias = "  %5 = add(%2, %3) : f32[2x3x4]\n";
const std::string kZero = "  const %6 : f32[] \"c\" = 0\n";

TEST_F(CublasLtProvider, FusesEpilogues) {
  expect_right(epilogue(kBias, kAddBias, "%5"), 1e-5);
  expect_right(epilogue(kZero, "  %5 = max(%2, %6) : f32[2x3x4]\n", "%5"), 1e-5);
  expect_right(epilogue(kBias + kZero, kAddBias + "  %7 = max(%5, %6) : f32[2x3x4]\n", "%7"), 1e-5);
  expect_right(epilogue(kResidual, "  %5 = add(%4, %2) : f32[2x3x4]\n", "%5"), 1e-5);
  expect_right(epilogue(kResidual + kBias + kZero,
                        "  %8 = add(%4, %2) : f32[2x3x4]\n  %5 = add(%8, %3) : f32[2x3x4]\n"
                        "  %7 = max(%5, %6) : f32[2x3x4]\n",
                        "%7"),
               1e-5);
  expect_right(epilogue(kBias + "  const %6 : f32[] \"c\" = 0.125\n",
                        "  %7 = mul(%2, %6) : f32[2x3x4]\n  %5 = add(%7, %3) : f32[2x3x4]\n", "%5"),
               1e-5);
  expect_right(epilogue(kBias,
                        "  %6 = reshape{shape=[6, 4]}(%2) : f32[6x4]\n"
                        "  %5 = add(%6, %3) : f32[6x4]\n",
                        "%5"),
               1e-5);
}

const std::string kGeluConstants =
    "  const %10 : f32[] \"c\" = 3\n  const %11 : f32[] \"c\" = 0.044715\n"
    "  const %12 : f32[] \"c\" = 0.7978845608\n  const %13 : f32[] \"c\" = 1\n  const %14 : f32[] "
    "\"c\" = 0.5\n";
const std::string kGeluTanh =
    "  %15 = pow(%5, %10) : f32[2x3x4]\n  %16 = mul(%15, %11) : f32[2x3x4]\n"
    "  %17 = add(%5, %16) : f32[2x3x4]\n  %18 = mul(%17, %12) : f32[2x3x4]\n"
    "  %19 = tanh(%18) : f32[2x3x4]\n  %20 = add(%19, %13) : f32[2x3x4]\n"
    "  %21 = mul(%5, %20) : f32[2x3x4]\n  %22 = mul(%21, %14) : f32[2x3x4]\n";

TEST_F(CublasLtProvider, TellsTheActivationByItsValues) {
  expect_right(epilogue(kBias + kGeluConstants, kAddBias + kGeluTanh, "%22"), 1e-4);
}

TEST_F(CublasLtProvider, FusesHalfPrecisionWithABiasInF32) {
  expect_right(R"(graph {
  input %0 : f16[3x5] "a"
  input %1 : f16[5x4] "b"
  input %2 : f32[4] "bias"
  %3 = matmul{transpose_a=0, transpose_b=0}(%0, %1) : f16[3x4]
  %4 = cast{saturate=1, to="f32"}(%3) : f32[3x4]
  %5 = add(%4, %2) : f32[3x4]
  %6 = cast{saturate=1, to="f16"}(%5) : f16[3x4]
  output %6 "d"
})",
               4e-3);
}

// Nothing is fused that would mean something else.
TEST_F(CublasLtProvider, LeavesOtherEpiloguesAlone) {
  const std::string bodies[] = {
      epilogue(kBias + "  const %6 : f32[] \"c\" = 0.125\n",  // a factor of the bias as well
               kAddBias + "  %7 = mul(%5, %6) : f32[2x3x4]\n", "%7"),
      epilogue(kZero + kResidual,  // relu, then the residual
               "  %7 = max(%2, %6) : f32[2x3x4]\n  %8 = add(%7, %4) : f32[2x3x4]\n", "%8"),
      epilogue("", "  %5 = sigmoid(%2) : f32[2x3x4]\n", "%5"),
      epilogue("  input %3 : f32[3x1] \"rows\"\n", kAddBias, "%5"),
      epilogue("  const %6 : f32[] \"c\" = 1\n", "  %7 = max(%2, %6) : f32[2x3x4]\n", "%7"),
  };
  for (const std::string& text : bodies) {
    SCOPED_TRACE(text);
    const ir::Region region = parse(text);
    const auto inputs = test::random_inputs(*region.body, 7);
    std::string refusal;
    const auto tactics = cublaslt_candidates(query(region, inputs), refusal);
    ASSERT_FALSE(tactics.empty()) << refusal;
    EXPECT_TRUE(tactics[0].key.starts_with("split/")) << tactics[0].key;
  }
}

// A product of codes with its scale, in the type `made`; %2 is the scaled product.
std::string codes(const std::string& extents, const std::string& made, const std::string& lines,
                  const std::string& output) {
  std::istringstream numbers(extents);
  std::string m, n, k;
  numbers >> m >> n >> k;
  const std::string type = "f32[" + m + "x" + n + "]", stored = made + "[" + m + "x" + n + "]";
  return "graph {\n  input %0 : f8e4m3fn[" + m + "x" + k + "] \"a\"\n  input %1 : f8e4m3fn[" + n +
         "x" + k + "] \"b\"\n  input %6 : f32[" + n + "] \"bias\"\n" +
         "  const %3 : f32[] \"scale\" = 0.125\n" +
         "  %4 = matmul{transpose_a=0, transpose_b=1}(%0, %1) : " + type +
         "\n  %2 = mul(%4, %3) : " + type + "\n  %7 = add(%2, %6) : " + type + "\n" + lines +
         "  %5 = cast{saturate=1, to=\"" + made + "\"}(" + output + ") : " + stored +
         "\n  output %5 \"d\"\n}";
}

TEST_F(CublasLtProvider, MultipliesCodesWithTheirScaleAsAlpha) {
  expect_right(codes("3 16 32", "f16", "", "%7"), 4e-3);
  expect_right(codes("3 16 32", "bf16", "", "%7"), 2e-2);
  expect_right(codes("5 32 16", "f16",
                     "  const %8 : f32[] \"c\" = 0\n  %9 = max(%7, %8) : f32[5x32]\n", "%9"),
               4e-3);
  EXPECT_EQ(fake_.fast_matmuls, 0);
}

// A step of e4m3 is an eighth of its number.
TEST_F(CublasLtProvider, QuantisesResultsOfCodes) {
  const std::string scale = "  const %8 : f32[] \"c\" = 0.0625\n";
  const std::string zero = "  const %10 : f32[] \"c\" = 0\n";
  expect_right(codes("3 16 32", "f8e4m3fn", scale + "  %9 = div(%7, %8) : f32[3x16]\n", "%9"),
               0.07);
  expect_right(codes("3 16 32", "f8e4m3fn",
                     scale + zero + "  %11 = max(%7, %10) : f32[3x16]\n" +
                         "  %9 = mul(%11, %8) : f32[3x16]\n",
                     "%9"),
               0.07);
  expect_right(codes("3 16 32", "f8e4m3fn", "", "%7"), 0.07);
}

TEST_F(CublasLtProvider, LeavesOtherWaysToQuantiseAlone) {
  const std::string bodies[] = {
      codes("3 16 32", "f8e4m3fn",  // a scale of each column
            "  input %8 : f32[16] \"scales\"\n  %9 = div(%7, %8) : f32[3x16]\n", "%9"),
      codes("3 16 32", "f8e4m3fn",  // what is added to codes
            "  input %8 : f8e4m3fn[3x16] \"residual\"\n"
            "  %10 = cast{saturate=1, to=\"f32\"}(%8) : f32[3x16]\n"
            "  %9 = add(%7, %10) : f32[3x16]\n",
            "%9"),
  };
  for (const std::string& text : bodies) {
    SCOPED_TRACE(text);
    const ir::Region region = parse(text);
    const auto inputs = test::random_inputs(*region.body, 7);
    std::string refusal;
    const auto tactics = cublaslt_candidates(query(region, inputs), refusal);
    ASSERT_FALSE(tactics.empty()) << refusal;
    EXPECT_TRUE(tactics[0].key.starts_with("split/")) << tactics[0].key;
  }
}

TEST_F(CublasLtProvider, OffersFasterSumsOfCodesBesideTheExact) {
  const ir::Region region = parse(codes("3 16 32", "f16", "", "%7"));
  const auto inputs = test::random_inputs(*region.body, 7);
  std::string refusal;
  const auto tactics = cublaslt_candidates(query(region, inputs), refusal);
  std::vector<std::string> forms;
  for (const Tactic& tactic : tactics) {
    const std::string form = tactic.key.substr(0, tactic.key.find('/'));
    if (std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
    const auto lowered = cublaslt_lower(query(region, inputs), tactic);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    const auto& call = std::get<LibraryCall>(lowered->steps.at(0));
    EXPECT_EQ(call.operation.get_string("compute", ""),
              form.ends_with("-fast") ? "fast_f32" : "f32");
  }
  EXPECT_EQ(forms, (std::vector<std::string>{"fused", "fused-fast", "split", "split-fast"}));
  const std::string key = tactics[0].key.substr(tactics[0].key.find('/'));
  const ir::Region half = parse(matmul("f16[3x5]", "f16[5x7]", "f16[3x7]", 0, 0));
  const auto halves = test::random_inputs(*half.body, 7);
  EXPECT_FALSE(cublaslt_lower(query(half, halves), {"fused-fast" + key}).ok());
}

TEST_F(CublasLtProvider, RefusesCodesThatTheTensorCoresDoNotTake) {
  struct Row {
    std::string body;
    const char* why;
  };
  const auto plain = [](const char* a, const char* b, const char* d, int ta, int tb) {
    return matmul(std::string("f8e4m3fn") + a, std::string("f8e4m3fn") + b, std::string("f32") + d,
                  ta, tb);
  };
  const Row rows[] = {
      {codes("3 16 24", "f16", "", "%7"), "k is 24, expected a multiple of 16"},
      {codes("3 20 32", "f16", "", "%7"), "n is 20, expected a multiple of 16"},
      {plain("[16x32]", "[32x16]", "[16x16]", 0, 0), "not both stored along k"},
      {plain("[32x16]", "[16x32]", "[16x16]", 1, 1), "not both stored along k"},
  };
  for (const Row& row : rows) {
    const ir::Region region = parse(row.body);
    const auto inputs = test::random_inputs(*region.body, 7);
    std::string refusal;
    EXPECT_TRUE(cublaslt_candidates(query(region, inputs), refusal).empty());
    EXPECT_NE(refusal.find(row.why), std::string::npos) << refusal;
  }
}

// It adds biases in f16 and bf16 alone to such products.
TEST_F(CublasLtProvider, LeavesABiasInF32OfCodesToAKernel) {
  const ir::Region region = parse(codes("3 16 32", "f32", "", "%7"));
  const auto inputs = test::random_inputs(*region.body, 7);
  std::string refusal;
  const auto tactics = cublaslt_candidates(query(region, inputs), refusal);
  ASSERT_FALSE(tactics.empty()) << refusal;
  EXPECT_TRUE(tactics[0].key.starts_with("split/")) << tactics[0].key;
}

TEST_F(CublasLtProvider, MakesACallFromItsKeyAlone) {
  for (uint32_t hidden : {0U, 5U}) {
    fake_.hidden = hidden;
    tools_.answers = std::make_shared<DeviceAnswers>();  // another library: ask again
    const MatmulRequest request{
        {}, {DType::kF32, {3, 5}}, {DType::kF32, {5, 7}}, {DType::kF32, {3, 7}}};
    const auto choices = cublaslt_choices(tools_, request, 8);
    ASSERT_TRUE(choices.ok()) << choices.error().message;
    // Two of the heuristics, and those of the single id are the same ones again.
    ASSERT_EQ(choices->size(), 2U);
    EXPECT_EQ(choices->at(0).key.find(".x") != std::string::npos, hidden != 0);
    for (const MatmulChoice& choice : *choices) {
      const auto call = matmul_call(*matmul_problem(request), choice.key);
      ASSERT_TRUE(call.ok()) << call.error().message;
      EXPECT_EQ(call->operation, choice.call.operation);
    }
  }
}

}  // namespace
}  // namespace kiln
