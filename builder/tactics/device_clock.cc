#include "builder/tactics/device_clock.h"

#include <algorithm>
#include <vector>

namespace kiln {

int runs_in_a_graph(uint64_t weights_bytes, uint64_t cache_bytes) {
  // kLong: runs of what outgrows the cache, which is cold every time, take long.
  constexpr uint64_t kLong = 4, kFew = 16, kMany = 256;
  if (weights_bytes > 2 * cache_bytes) return kLong;
  const uint64_t cold = weights_bytes == 0 ? 0 : 2 * cache_bytes / weights_bytes + 1;
  return static_cast<int>(std::clamp(cold, kFew, kMany));
}

int runs_in_a_short_graph(int most, double us) {
  constexpr double kGraphUs = 5000;
  constexpr int kFew = 2;
  return static_cast<int>(
      std::clamp<double>(kGraphUs / std::max(us, 0.1), std::min(kFew, most), most));
}

Result<double> DeviceClock::glance() {
  const int all = copies_;
  copies_ = std::min(all, 2);
  KILN_RETURN_IF_ERROR(time(1));  // warms up
  KILN_ASSIGN_OR_RETURN(const double us, time(1));
  if (!between_host_steps_) copies_ = runs_in_a_short_graph(all, us);
  return us;
}

Result<double> DeviceClock::time(int runs) {
  if (!between_host_steps_) {
    auto us = context_.time_with_cold_weights(0, copies_, runs);
    if (us.ok() || us.error().code != ErrorCode::kUnsupported) return us;
    between_host_steps_ = true;
    copies_ = 1;
  }
  return context_.time_on_device(0, runs);
}

Result<double> DeviceClock::time_for(double total_us, double estimate_us) {
  const double graph_us = std::max(estimate_us, 0.1) * copies_;
  return time(std::clamp(static_cast<int>(total_us / graph_us), 1, 200));
}

Result<Spread> DeviceClock::measure(double estimate_us) {
  constexpr int kSamples = 7;
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) {
    KILN_ASSIGN_OR_RETURN(const double us, time_for(2000, estimate_us));
    times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  return Spread{times[kSamples / 2], (times[kSamples * 3 / 4] - times[kSamples / 4]) / 2};
}

}  // namespace kiln
