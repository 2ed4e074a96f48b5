// Writing to standard output so that a full disk is not taken for success.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace kiln {

// false: standard output did not take all of the text; standard error says why.
inline bool print_out(const char* program, const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return true;
  std::fprintf(stderr, "%s: error: write to standard output: %s (io)\n", program,
               std::strerror(errno));
  return false;
}

}  // namespace kiln
