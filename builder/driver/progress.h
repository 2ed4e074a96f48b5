// ProgressMeter: turns stages of a build into BuildProgress with an estimate of the time left.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "builder/build_options.h"
#include "formats/report/report.h"

namespace kiln {

// Shares of the whole build; tactics take by far the most.
inline constexpr double kTacticsFrom = 0.05, kTacticsTo = 0.8, kVerifyTo = 0.97;

class ProgressMeter {
 public:
  explicit ProgressMeter(const ProgressFn& callback) : callback_(callback) {}

  // Starts a stage that covers [from, to] of the whole build.
  void begin(std::string stage, double from, double to);
  // Share of the current stage that is done, 0 to 1.
  void update(double share);
  // Wall-clock seconds of each stage so far, equal names added up.
  std::vector<report::Stage> stages();

 private:
  using Clock = std::chrono::steady_clock;
  void close_stage();

  const ProgressFn& callback_;
  Clock::time_point start_ = Clock::now(), stage_start_ = Clock::now();
  std::string stage_;
  double from_ = 0, to_ = 0;
  std::vector<report::Stage> done_;
};

}  // namespace kiln
