#include "formats/onnx/content_hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/formats/onnx/proto_writer.h"

namespace kiln::onnx::testing {
namespace {

// Two tensors in w.bin, one in v.bin.
std::string model_bytes() {
  Message graph_proto = graph({node("n", "Relu", {"w"}, {"y"})}, {}, {"y"});
  for (const auto& [name, file, offset] :
       {std::tuple("w", "w.bin", "0"), std::tuple("v", "v.bin", "0"),
        std::tuple("u", "w.bin", "4")}) {
    Message proto = tensor(name, 1, {1}).integer(14, 1);
    proto.message(13, external_entry("location", file));
    proto.message(13, external_entry("offset", offset));
    graph_proto.message(5, proto);
  }
  return model(graph_proto).bytes();
}

uint64_t hash_in(const ScratchFolder& folder, const std::string& name) {
  const auto read = read_model(folder / name);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? content_hash(*read) : 0;
}

TEST(ContentHash, IsThatOfTheFilesOneAfterTheOther) {
  const ScratchFolder folder;
  const std::string w = raw<float>({1, 2}), v = raw<float>({3});
  folder.write("w.bin", w);
  folder.write("v.bin", v);
  folder.write("m.onnx", model_bytes());
  const std::string all = model_bytes() + w + v;
  EXPECT_EQ(hash_in(folder, "m.onnx"), XXH3_64bits(all.data(), all.size()));
}

TEST(ContentHash, KnowsTheContentAndNotTheName) {
  const ScratchFolder folder;
  folder.write("w.bin", raw<float>({1, 2}));
  folder.write("v.bin", raw<float>({3}));
  folder.write("m.onnx", model_bytes());
  folder.write("other.onnx", model_bytes());
  const uint64_t before = hash_in(folder, "m.onnx");
  EXPECT_EQ(hash_in(folder, "other.onnx"), before);
  folder.write("v.bin", raw<float>({4}));
  EXPECT_NE(hash_in(folder, "m.onnx"), before);
}

}  // namespace
}  // namespace kiln::onnx::testing
