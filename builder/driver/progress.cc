#include "builder/driver/progress.h"

#include <algorithm>

namespace kiln {
namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void ProgressMeter::begin(std::string stage, double from, double to) {
  close_stage();
  stage_ = std::move(stage);
  stage_start_ = Clock::now();
  from_ = from;
  to_ = to;
  update(0);
}

void ProgressMeter::update(double share) {
  if (!callback_) return;
  const double fraction = from_ + (to_ - from_) * share;
  const double spent = seconds(Clock::now() - start_);
  // The first moments say nothing about the rest.
  const bool known = fraction > 0.05 && spent > 1.0;
  callback_({stage_, fraction, known ? spent * (1 - fraction) / fraction : -1});
}

std::vector<report::Stage> ProgressMeter::stages() {
  close_stage();
  return done_;
}

void ProgressMeter::close_stage() {
  if (stage_.empty()) return;
  const double spent = seconds(Clock::now() - stage_start_);
  const std::string name = stage_.substr(0, stage_.find(' '));
  const auto found = std::find_if(done_.begin(), done_.end(),
                                  [&](const report::Stage& stage) { return stage.name == name; });
  if (found == done_.end()) {
    done_.push_back({name, spent});
  } else {
    found->seconds += spent;
  }
  stage_.clear();
}

}  // namespace kiln
