// Running Kiln's programs from tests.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kiln::testing {

struct ProgramResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

// A folder that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln_XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// A program of the build's bin folder, or one with a path.
inline ProgramResult run_program(const std::string& program, const std::vector<std::string>& args) {
  const ScratchFolder scratch;
  const char* build = std::getenv("KILN_BINARY_DIR");
  std::string command = program;
  if (program.find('/') == std::string::npos) {
    command = std::string(build == nullptr ? "build" : build) + "/bin/" + program;
  }
  command = shell_quoted(command);
  for (const std::string& arg : args) command += " " + shell_quoted(arg);
  command += " >" + scratch / "out" + " 2>" + scratch / "err" + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(scratch / "out"),
          read_text(scratch / "err")};
}

}  // namespace kiln::testing
