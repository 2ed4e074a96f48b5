// Running Kiln's programs from tests.
#pragma once
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/environment.h"
#include "tests/scratch_folder.h"

namespace kiln::testing {

struct ProgramResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

inline std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// A program of the build's bin folder, or one with a path.
inline ProgramResult run_program(const std::string& program, const std::vector<std::string>& args) {
  const ScratchFolder scratch;
  std::string command = program;
  if (program.find('/') == std::string::npos) {
    command = build_folder() / "bin" / program;
  }
  command = shell_quoted(command);
  for (const std::string& arg : args) command += " " + shell_quoted(arg);
  command += " >" + (scratch / "out").string() + " 2>" + (scratch / "err").string() + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(scratch / "out"),
          read_text(scratch / "err")};
}

}  // namespace kiln::testing
