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

TEST(AtomicFile, TakesTheLongestName) {
  const testing::ScratchFolder folder;
  const std::array pieces = {bytes_of("text")};
  const std::string name(255, 'n');
  for (int time = 0; time < 2; ++time) {
    const auto wrote = write_file_atomically(folder / name, pieces);
    ASSERT_TRUE(wrote) << wrote.error().message;
  }
  EXPECT_EQ(testing::read_text(folder / name), "text");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesAFolderInItsWayAlone) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directories(folder / "f" / "inner");
  const auto wrote = write_file_atomically(folder / "f", {});
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::kIo);
  EXPECT_EQ(folder.entries(), 1u);
}

// Renaming a file over /dev/null, as root, would break the machine.
TEST(AtomicFile, LeavesPipesAndDevicesAlone) {
  const testing::ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder / "pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    const auto wrote = write_file_atomically(folder / name, {});
    ASSERT_FALSE(wrote) << name;
    EXPECT_EQ(wrote.error().message,
              "write '" + (folder / name).string() + "': is not a regular file");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(folder.entries(), 2u);
}

TEST(AtomicFile, ReplacesWhatALinkLeadsTo) {
  const testing::ScratchFolder folder;
  const std::array pieces = {bytes_of("new")};
  std::filesystem::create_directory(folder / "inner");
  testing::write_bytes(folder / "inner" / "f", bytes_of("old"));
  std::filesystem::create_symlink("inner/f", folder / "link");
  ASSERT_TRUE(write_file_atomically(folder / "link", pieces));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(testing::read_text(folder / "inner" / "f"), "new");
}

TEST(AtomicFile, NamesTheFolderThatIsMissing) {
  const testing::ScratchFolder folder;
  const auto can = check_can_write(folder / "absent" / "f");
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().message, "write '" + (folder / "absent" / "f").string() + "': folder '" +
                                     (folder / "absent").string() + "': no such file or directory");
  EXPECT_TRUE(check_can_write(folder / "f"));
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(SameFile, SeesThroughLinksAndDots) {
  const testing::ScratchFolder folder;
  testing::write_bytes(folder / "f", {});
  testing::write_bytes(folder / "g", {});
  std::filesystem::create_symlink("f", folder / "link");
  EXPECT_TRUE(is_same_file(folder / "f", folder.path() / "." / "f"));
  EXPECT_TRUE(is_same_file(folder / "f", folder / "link"));
  EXPECT_FALSE(is_same_file(folder / "f", folder / "g"));
  EXPECT_TRUE(is_same_file(folder / "absent", folder.path() / "." / "absent"));
  EXPECT_FALSE(is_same_file(folder / "absent", folder / "f"));
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
