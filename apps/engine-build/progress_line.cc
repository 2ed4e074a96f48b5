#include "apps/engine-build/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace {

std::string time_left(double seconds) {
  if (seconds < 0) return "";
  const auto whole = static_cast<long>(seconds + 0.5);
  char text[48];
  if (whole >= 60) {
    std::snprintf(text, sizeof text, ", about %ld min %02ld s left", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, ", about %ld s left", whole);
  }
  return text;
}

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const kiln::BuildProgress& progress) {
  if (quiet_ || progress.stage.empty()) return;
  const bool new_stage = progress.stage != stage_;
  stage_ = progress.stage;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_) {
    if (!new_stage) return;
    std::fprintf(stderr, "[%3.0f %%] %s%s\n", 100 * progress.fraction, stage_.c_str(),
                 time_left(progress.seconds_left).c_str());
    return;
  }
  constexpr auto kRedraw = std::chrono::milliseconds(100);
  if (!new_stage && now - last_ < kRedraw) return;
  last_ = now;
  drawn_ = true;
  std::fprintf(stderr, "\r\033[K[%3.0f %%] %s%s", 100 * progress.fraction, stage_.c_str(),
               time_left(progress.seconds_left).c_str());
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}
