#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/formats/onnx/proto_writer.h"

namespace kiln::onnx::testing {
namespace {

// A model whose float initializer "w", two elements, lies at `location`.
Message external_model(std::string_view location, std::string_view offset = "",
                       std::string_view length = "") {
  Message proto = tensor("w", 1, {2}).integer(14, 1);
  proto.message(13, external_entry("location", location));
  if (!offset.empty()) proto.message(13, external_entry("offset", offset));
  if (!length.empty()) proto.message(13, external_entry("length", length));
  return model_of(proto, "w");
}

TEST(ExternalData, IsMappedFromTheModelsFolder) {
  const ScratchFolder folder;
  folder.write("data/w.bin", raw<float>({0, 1, 2, 3}));
  const auto path = folder.write("m.onnx", external_model("data/w.bin", "8", "8").bytes());
  auto model = read_model(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const float* values = model->graph.initializers[0].as<float>();
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[1], 3);
}

TEST(ExternalData, LengthMayBeLeftOut) {
  const ScratchFolder folder;
  folder.write("w.bin", raw<float>({7, 8, 9}));
  auto model = parse_model(external_model("./w.bin").span(), folder.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->graph.initializers[0].as<float>()[1], 8);
}

TEST(ExternalData, UnalignedOffsetIsRepaired) {
  const ScratchFolder folder;
  folder.write("w.bin", "x" + raw<float>({7, 8}));
  auto model = parse_model(external_model("w.bin", "1").span(), folder.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Tensor& w = model->graph.initializers[0];
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data.data()) % 4, 0u);
  EXPECT_EQ(w.as<float>()[0], 7);
}

// 4 GiB of zeros in a sparse file: were it read and not mapped, memory would show it.
TEST(ExternalData, OverTwoGigabytesStayOutOfMemory) {
  const ScratchFolder folder;
  const auto file = folder.write("w.bin", "");
  std::filesystem::resize_file(file, uint64_t{1} << 32);
  Message proto = tensor("w", 1, {1 << 15, 1 << 15}).integer(14, 1);
  proto.message(13, external_entry("location", "w.bin"));
  auto model = parse_model(model_of(proto, "w").span(), folder.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Tensor& w = model->graph.initializers[0];
  EXPECT_EQ(w.data.size(), uint64_t{1} << 32);
  EXPECT_EQ(w.as<float>()[(1 << 30) - 1], 0);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    EXPECT_LT(std::stoll(line.substr(6)), 2 << 20) << line;  // KiB
  }
}

TEST(ExternalData, RefusesASymbolicLink) {
  const ScratchFolder outside, folder;
  const auto file = outside.write("secret.bin", raw<float>({1, 2}));
  std::filesystem::create_symlink(file, folder.path() / "link.bin");
  EXPECT_EQ(parse_error(external_model("link.bin"), folder.path()),
            "initializer 'w': external location 'link.bin' is or passes through a symbolic link, "
            "expected a regular file in the model's folder; copy the file there");
}

TEST(ExternalData, RefusesALinkedFolder) {
  const ScratchFolder outside, folder;
  outside.write("secret.bin", raw<float>({1, 2}));
  std::filesystem::create_directory_symlink(outside.path(), folder.path() / "sub");
  EXPECT_EQ(parse_error(external_model("sub/secret.bin"), folder.path()),
            "initializer 'w': external location 'sub/secret.bin' is or passes through a symbolic "
            "link, expected a regular file in the model's folder; copy the file there");
}

TEST(ExternalData, RefusesAHardLink) {
  const ScratchFolder outside, folder;
  const auto file = outside.write("secret.bin", raw<float>({1, 2}));
  std::filesystem::create_hard_link(file, folder.path() / "w.bin");
  EXPECT_EQ(parse_error(external_model("w.bin"), folder.path()),
            "initializer 'w': external file 'w.bin' has 2 hard links, expected one, as the others "
            "may lie outside of the model's folder; copy the file");
}

TEST(ExternalData, RefusesDotsInTheMiddle) {
  const ScratchFolder folder;
  folder.write("w.bin", raw<float>({1, 2}));
  EXPECT_EQ(parse_error(external_model("sub/../w.bin"), folder.path()),
            "initializer 'w': external location 'sub/../w.bin' leaves the model's folder by '..', "
            "expected a path inside of it");
}

TEST(ExternalData, RefusesWhatIsNoRegularFile) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(parse_error(external_model("pipe"), folder.path()),
            "initializer 'w': read 'pipe': is not a regular file");
  EXPECT_EQ(parse_error(external_model("."), folder.path()),
            "initializer 'w': read '.': is not a regular file");
}

TEST(ExternalData, RefusesWhatEndsPastTheFile) {
  const ScratchFolder folder;
  folder.write("w.bin", raw<float>({1, 2}));
  EXPECT_EQ(parse_error(external_model("w.bin", "4"), folder.path()),
            "initializer 'w': external data is 8 bytes at offset 4 of 'w.bin', which has 8 bytes");
}

TEST(ExternalData, RefusesNumbersThatAreNone) {
  const ScratchFolder folder;
  for (const char* bad : {"-1", "1x", " 1", "0x10", "99999999999999999999"}) {
    EXPECT_EQ(parse_error(external_model("w.bin", bad), folder.path()),
              "initializer 'w': external data has offset '" + std::string(bad) +
                  "', expected a number from 0 on");
  }
}

TEST(ExternalData, RefusesMissingLocationAndFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(parse_error(external_model(""), folder.path()),
            "initializer 'w': external data has no location, expected a file name");
  EXPECT_EQ(parse_error(external_model("w.bin")),
            "initializer 'w': external data 'w.bin' is not allowed in a model without a folder");
}

}  // namespace
}  // namespace kiln::onnx::testing
