// ProgressLine: a build's progress on stderr: one line redrawn on a terminal, plain lines at each
// new stage elsewhere, nothing when quiet.
#pragma once
#include <chrono>
#include <string>

#include "builder/build_options.h"

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  void show(const kiln::BuildProgress& progress);
  void finish();

 private:
  bool quiet_, terminal_;
  bool drawn_ = false;
  std::string stage_;
  std::chrono::steady_clock::time_point last_{};
};
