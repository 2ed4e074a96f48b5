#include "formats/onnx/read_model.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/environment.h"
#include "tests/formats/onnx/proto_writer.h"

namespace kiln::onnx::testing {
namespace {

TEST(ReadModel, DecodesNamesTypesAndVersions) {
  const Message sequence_type =
      Message().message(4, Message().message(1, Message().message(1, Message().integer(1, 8))));
  const Message shape = Message()
                            .message(1, Message().text(2, "batch"))
                            .message(1, Message().integer(1, 3))
                            .message(1, Message());
  const Message x_type = Message().message(1, Message().integer(1, 16).message(2, shape));
  const Message g = graph({node("n", "Relu", {"x"}, {"y"})}, {}, {"y"})
                        .message(11, Message().text(1, "x").message(2, x_type))
                        .message(11, Message().text(1, "s").message(2, sequence_type))
                        .message(13, value("y", {-1}));
  const ScratchFolder folder;
  const auto path = folder.write("m.onnx", model(g).text(2, "pytorch").text(3, "2.5").bytes());
  auto m = read_model(path);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->path, path);
  EXPECT_EQ(m->ir_version, 8);
  EXPECT_EQ(m->producer, "pytorch 2.5");
  EXPECT_EQ(m->opset_imports, (std::map<std::string, int64_t>{{"", 17}}));
  ASSERT_EQ(m->graph.inputs.size(), 2u);
  const ValueInfo& x = m->graph.inputs[0];
  EXPECT_EQ(x.dtype, DType::kBF16);
  EXPECT_EQ(x.type_text, "bfloat16[batch,3,?]");
  ASSERT_EQ(x.shape->size(), 3u);
  EXPECT_EQ((*x.shape)[0].symbol, "batch");
  EXPECT_EQ((*x.shape)[1].extent, 3);
  EXPECT_EQ((*x.shape)[2].extent, std::nullopt);
  EXPECT_EQ(m->graph.inputs[1].type_text, "sequence(string)");
  EXPECT_EQ(m->graph.inputs[1].dtype, std::nullopt);
  // Some exporters write -1 for a dimension that varies.
  EXPECT_EQ((*m->graph.value_info.at(0).shape)[0].extent, std::nullopt);
}

TEST(ReadModel, NamesTheFile) {
  const ScratchFolder folder;
  const auto missing = folder.path() / "none.onnx";
  auto result = read_model(missing);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "read '" + missing.string() + "': no such file or directory");
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  auto is_folder = read_model(folder.path());
  ASSERT_FALSE(is_folder.ok());
  EXPECT_EQ(is_folder.error().message,
            "read '" + folder.path().string() + "': is not a regular file");
}

TEST(ReadModel, SaysWhereItIsCut) {
  const std::string whole = model(graph({node("n", "Relu", {"x"}, {"y"})}, {"x"}, {"y"})).bytes();
  const std::string cut = whole.substr(0, whole.size() - 5);
  auto result = parse_model(std::as_bytes(std::span(cut)));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message,
            "is no onnx model: field 7 at byte 8 claims 54 bytes, 49 are left; the file may be cut "
            "short");
}

TEST(ReadModel, EveryTruncationIsAnError) {
  const Message w = tensor("w", 1, {2}).text(kFloatData, raw<float>({1, 2}));
  const std::string whole = model_of(w, "w").bytes();
  ASSERT_TRUE(parse_model(std::as_bytes(std::span(whole))).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_FALSE(parse_model(std::as_bytes(std::span(cut))).ok()) << size;
  }
}

TEST(ReadModel, RefusesTextAndATensorFile) {
  const std::string text = "{\"this\": \"is json\"}";
  EXPECT_FALSE(parse_model(std::as_bytes(std::span(text))).ok());
  const Message t = tensor("w", 1, {1}).text(kRawData, raw<float>({1}));
  EXPECT_FALSE(parse_model(t.span()).ok());
}

TEST(ReadTensorFile, ReadsATensor) {
  const ScratchFolder folder;
  const auto path =
      folder.write("t.pb", tensor("t", 7, {2}).text(kInt64Data, packed({4, -4})).bytes());
  auto t = read_tensor_file(path);
  ASSERT_TRUE(t.ok()) << t.error().message;
  EXPECT_EQ(t->name, "t");
  EXPECT_EQ(t->as<int64_t>()[1], -4);
}

TEST(ReadTensorFile, NamesTheFile) {
  const ScratchFolder folder;
  const auto path = folder.write("t.pb", tensor("t", 1, {2}).bytes());
  auto t = read_tensor_file(path);
  ASSERT_FALSE(t.ok());
  EXPECT_TRUE(t.error().message.starts_with("read '" + path.string() + "': is f32[2]"))
      << t.error().message;
}

// Faults in an operator's meaning, found where types are inferred, not while reading.
bool is_for_the_importer(const std::string& name) {
  for (const char* known :
       {"node_concat_axis_out_of_range", "node_conv_group_0", "node_conv_rank_mismatch",
        "node_dq_scale_0", "node_huge_fill", "node_transpose_perm_repeats", "node_type_mismatch",
        "op_unknown", "op_unknown_domain"}) {
    if (name == known) return true;
  }
  return false;
}

// Checkouts may lose symbolic links, so the one that a case is about is made anew.
std::filesystem::path restore_link(const std::filesystem::path& folder, const ScratchFolder& to) {
  if (folder.filename() != "external_symlink") return folder / "model.onnx";
  std::filesystem::copy_file(folder / "model.onnx", to.path() / "model.onnx");
  std::filesystem::create_symlink(folder.parent_path() / "outside.bin", to.path() / "link.bin");
  return to.path() / "model.onnx";
}

TEST(ReadModel, MalformedCasesAreRefusedByName) {
  const std::filesystem::path cases = kiln::testing::cases_folder() / "malformed";
  if (!std::filesystem::is_directory(cases)) GTEST_SKIP() << "no cases in KILN_CASES_DIR";
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const ScratchFolder copy;
    const auto start = std::chrono::steady_clock::now();
    auto result = read_model(restore_link(entry.path(), copy));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    if (is_for_the_importer(name)) {
      EXPECT_TRUE(result.ok()) << result.error().message;
      continue;
    }
    ASSERT_FALSE(result.ok());
    std::ifstream file(entry.path() / "case.json");
    const auto expected = nlohmann::json::parse(file).at("error_must_name");
    for (const auto& word : expected) {
      EXPECT_NE(result.error().message.find(word.get<std::string>()), std::string::npos)
          << result.error().message;
    }
    ++refused;
  }
  EXPECT_EQ(refused, 29);
}

}  // namespace
}  // namespace kiln::onnx::testing
