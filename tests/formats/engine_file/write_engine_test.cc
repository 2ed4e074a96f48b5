#include "formats/engine_file/write_engine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "formats/engine_file/read_engine.h"
#include "tests/engine/plan_fixtures.h"
#include "tests/scratch_folder.h"

namespace kiln {
namespace {

// Runs the body in a process of its own, whose limits and mounts end with it; returns its answer.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

plan::Plan large_plan() {
  plan::Plan plan = testing::affine_plan({1});
  testing::PlanParts(plan).constant<float>("large", std::vector<float>(1 << 20, 1.0f));
  return plan;
}

// 0: it failed as it should, named the reason, and the old file and nothing else is in the folder.
int write_fails_cleanly(const std::filesystem::path& folder, const std::string& reason) {
  const auto wrote = write_engine(large_plan(), folder / "m.engine");
  if (wrote) return 1;
  if (wrote.error().code != ErrorCode::kIo) return 2;
  if (wrote.error().message.find("m.engine': " + reason) == std::string::npos) return 3;
  if (testing::read_text(folder / "m.engine") != "the old file") return 4;
  return std::distance(std::filesystem::directory_iterator(folder), {}) == 1 ? 0 : 5;
}

void write_old_file(const std::filesystem::path& folder) {
  testing::write_bytes(folder / "m.engine", std::as_bytes(std::span("the old file", 12)));
}

TEST(WriteEngine, OldFileSurvivesAFileSizeLimit) {
  const testing::ScratchFolder folder;
  write_old_file(folder.path());
  EXPECT_EQ(in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {1 << 20, 1 << 20};
              setrlimit(RLIMIT_FSIZE, &limit);
              return write_fails_cleanly(folder.path(), "file too large");
            }),
            0);
}

TEST(WriteEngine, OldFileSurvivesAFullDisk) {
  constexpr int kNotPermitted = 100;
  const testing::ScratchFolder folder;
  const int answer = in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      return kNotPermitted;
    }
    write_old_file(folder.path());
    return write_fails_cleanly(folder.path(), "no space left on device");
  });
  if (answer == kNotPermitted) GTEST_SKIP() << "mounting a small file system is not permitted here";
  EXPECT_EQ(answer, 0);
}

TEST(WriteEngine, ReplacesAnOlderFile) {
  const testing::ScratchFolder folder;
  write_old_file(folder.path());
  ASSERT_TRUE(write_engine(testing::affine_plan({1}), folder / "m.engine"));
  EXPECT_TRUE(read_engine(folder / "m.engine"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteEngine, NamesAFolderThatIsAbsent) {
  const testing::ScratchFolder folder;
  const auto wrote = write_engine(testing::affine_plan({1}), folder / "absent" / "m.engine");
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::kIo);
  EXPECT_NE(wrote.error().message.find("absent': no such file or directory"), std::string::npos);
}

TEST(WriteEngine, RefusesABrokenPlan) {
  const testing::ScratchFolder folder;
  plan::Plan plan = testing::affine_plan({1});
  plan.points[0].steps[0].region = 9;
  const auto wrote = write_engine(plan, folder / "m.engine");
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(folder.entries(), 0u);
}

}  // namespace
}  // namespace kiln
