// What the programs print: names out of models and files can't steer the terminal, and a full disk
// is not taken for success.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "formats/result.h"

namespace kiln {

// Control characters but line feeds and tabs as \x1b.
inline std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code >= 0x20 && code != 0x7f) || c == '\n' || c == '\t') {
      clean += c;
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", code);
    clean += escaped;
  }
  return clean;
}

// Messages of the library name its fields; whoever runs a program sets them with flags.
inline std::string with_flags(std::string message) {
  constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
      {"LoadOptions::allow_unverified", "--allow-unverified"},
      {"LoadOptions::contexts", "--contexts"},
      {"LoadOptions::plugins", "--plugin"}};
  for (const auto& [field, flag] : kFlags) {
    for (size_t at = 0; (at = message.find(field, at)) != std::string::npos; at += flag.size()) {
      message.replace(at, field.size(), flag);
    }
  }
  return message;
}

// "engine-run: error: MESSAGE (io)" to standard error.
inline void print_error(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: error: %s (%s)\n", program,
               printable(with_flags(error.message)).c_str(), to_string(error.code));
}

// false: standard output did not take all of the text; standard error says why.
inline bool print_out(const char* program, const std::string& text) {
  if (std::fputs(printable(text).c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return true;
  print_error(program,
              {ErrorCode::kIo, std::string("write to standard output: ") + std::strerror(errno)});
  return false;
}

}  // namespace kiln
