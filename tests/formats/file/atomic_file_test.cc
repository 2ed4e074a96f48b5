#include "formats/file/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "formats/file/mapped_file.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(AtomicFile, WritesThePiecesInOrder) {
  const testing::ScratchFolder folder;
  const std::array pieces = {bytes_of("one "), bytes_of(""), bytes_of("two")};
  ASSERT_TRUE(write_file_atomically(folder / "f", pieces));
  EXPECT_EQ(testing::read_text(folder / "f"), "one two");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, HasTheUsersPermissions) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "f", {}));
  const mode_t mask = umask(0);
  umask(mask);
  struct stat status = {};
  ASSERT_EQ(stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0666u & ~mask);
}

TEST(AtomicFile, LeavesAFolderInItsWayAlone) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directories(folder / "f" / "inner");
  const auto wrote = write_file_atomically(folder / "f", {});
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::kIo);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(MappedFile, OutlivesTheName) {
  const testing::ScratchFolder folder;
  testing::write_bytes(folder / "f", bytes_of("content"));
  const auto mapped = map_file(folder / "f");
  ASSERT_TRUE(mapped);
  std::filesystem::remove(folder / "f");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped->data()), mapped->size()), "content");
}

TEST(MappedFile, TakesRegularFilesOnly) {
  const testing::ScratchFolder folder;
  testing::write_bytes(folder / "empty", {});
  ASSERT_TRUE(map_file(folder / "empty"));
  EXPECT_EQ(map_file(folder / "empty")->size(), 0u);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto& path : {folder / "absent", folder.path(), folder / "pipe"}) {
    const auto mapped = map_file(path);
    ASSERT_FALSE(mapped) << path;
    EXPECT_EQ(mapped.error().code, ErrorCode::kIo);
    EXPECT_NE(mapped.error().message.find(path.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace kiln
