#include "builder/driver/check_paths.h"

#include <gtest/gtest.h>

#include "tests/scratch_folder.h"

namespace kiln {
namespace {

class CheckPaths : public ::testing::Test {
 protected:
  CheckPaths() { options.output = folder / "m.engine"; }

  std::string refusal() {
    const auto checked = check_paths(folder / "m.onnx", options);
    return checked.ok() ? "" : checked.error().message;
  }
  std::string quoted(const char* name) { return "'" + (folder / name).string() + "'"; }

  testing::ScratchFolder folder;
  BuildOptions options;
};

TEST_F(CheckPaths, TakesDifferentFiles) {
  options.report = folder / "m.json";
  options.timing_cache = folder / "t.json";
  options.verify_data = folder / "x.npz";
  testing::write_bytes(options.verify_data, {});
  EXPECT_EQ(refusal(), "");
}

TEST_F(CheckPaths, FindsMissingVerifyDataBeforeTheWork) {
  options.verify_data = folder / "x.npz";
  options.verify = false;
  EXPECT_EQ(refusal(), "read " + quoted("x.npz") + ": no such file or directory");
}

TEST_F(CheckPaths, KeepsTheModelFromBeingOverwritten) {
  const std::string tail =
      " and model " + quoted("m.onnx") + " are one file, expected different ones";
  options.output = folder.path() / "." / "m.onnx";
  EXPECT_EQ(refusal(), "output '" + options.output.string() + "'" + tail);
  options.output = folder / "m.engine";
  options.timing_cache = folder / "m.onnx";
  EXPECT_EQ(refusal(), "timing cache " + quoted("m.onnx") + tail);
}

TEST_F(CheckPaths, KeepsEverythingElseThatIsRead) {
  const std::string tail = " are one file, expected different ones";
  options.plugins = {folder / "p.so"};
  options.sources = {folder / "s.npz"};
  std::filesystem::create_directory(folder / "data");
  testing::write_bytes(folder.path() / "data" / "1.npz", {});
  options.verify_data = folder / "data";
  for (const auto& [name, role] :
       {std::pair{"p.so", "plugin"}, {"s.npz", "shape values"}, {"data/1.npz", "verify data"}}) {
    const std::string path = (folder / "data").parent_path() / name;
    for (const auto& [field, what] : {std::pair{&BuildOptions::output, "output"},
                                      {&BuildOptions::report, "report"},
                                      {&BuildOptions::timing_cache, "timing cache"}}) {
      BuildOptions kept = options;
      options.*field = path;
      EXPECT_EQ(refusal(),
                std::string(what) + " '" + path + "' and " + role + " '" + path + "'" + tail);
      options = kept;
    }
  }
  const std::filesystem::path weights[] = {folder / "m.onnx.data"};
  options.report = weights[0];
  const auto checked = check_external_data(weights, options);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message, "report " + quoted("m.onnx.data") + " and external data " +
                                         quoted("m.onnx.data") + tail);
}

TEST_F(CheckPaths, KeepsOneResultFromOverwritingAnother) {
  options.report = options.output;
  EXPECT_EQ(refusal(), "output " + quoted("m.engine") + " and report " + quoted("m.engine") +
                           " are one file, expected different ones");
}

TEST_F(CheckPaths, FindsAMissingFolderBeforeTheWork) {
  options.output = folder / "absent" / "m.engine";
  EXPECT_EQ(refusal(), "write '" + options.output.string() + "': folder " + quoted("absent") +
                           ": no such file or directory");
  options.dry_run = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(CheckPaths, FindsATimingCacheThatNothingCanBecomeOf) {
  options.timing_cache = folder / "absent" / "t.json";
  EXPECT_EQ(refusal(), "write '" + options.timing_cache.string() + "': folder " + quoted("absent") +
                           ": no such file or directory");
  options.timing_cache = folder.path();
  EXPECT_EQ(refusal(), "write '" + options.timing_cache.string() + "': is a directory");
}

}  // namespace
}  // namespace kiln
