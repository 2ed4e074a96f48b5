#include "apps/engine-run/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace kiln::run {
namespace {

// REQUIRES: `sorted` is not empty.
double nearest_rank(std::span<const double> sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

double median_of(std::span<const double> sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double variation(std::span<const double> values, double mean) {
  if (values.size() < 2 || mean == 0) return 0;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / mean;
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

}  // namespace

Summary summarize(std::span<const double> measurements) {
  if (measurements.empty()) return {};
  std::vector<double> sorted(measurements.begin(), measurements.end());
  std::sort(sorted.begin(), sorted.end());
  Summary s;
  s.count = sorted.size();
  s.min = sorted.front();
  s.max = sorted.back();
  s.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(s.count);
  s.median = median_of(sorted);
  s.p90 = nearest_rank(sorted, 90);
  s.p95 = nearest_rank(sorted, 95);
  s.p99 = nearest_rank(sorted, 99);
  s.cv = variation(sorted, s.mean);
  return s;
}

std::vector<std::string> trust_warnings(std::span<const double> measurements) {
  std::vector<std::string> warnings;
  const size_t count = measurements.size();
  if (count < kFewestQueries) {
    warnings.push_back("only " + std::to_string(count) + " queries were measured, at least " +
                       std::to_string(kFewestQueries) + " are needed: raise --duration");
    return warnings;
  }
  if (count < 100) {
    warnings.push_back("p99 of " + std::to_string(count) +
                       " queries is just the slowest one: raise --duration or --iterations to "
                       "100 queries or more");
  }
  const Summary all = summarize(measurements);
  if (all.cv > kMostVariation) {
    warnings.push_back("latency varies by " + percent_text(all.cv) +
                       " (standard deviation over mean), more than " +
                       percent_text(kMostVariation) +
                       ": stop other programs, fix the clocks, compare medians");
  }
  const double first = summarize(measurements.first(count / 2)).median;
  const double second = summarize(measurements.subspan(count / 2)).median;
  const double drift = first > 0 ? second / first - 1 : 0;
  if (std::fabs(drift) > kMostDrift) {
    warnings.push_back("the second half was " + percent_text(std::fabs(drift)) +
                       (drift > 0 ? " slower" : " faster") +
                       " than the first: the machine warmed up or slowed down, raise --warmup "
                       "and run again");
  }
  return warnings;
}

std::vector<std::string> part_warnings(const PartMedians& parts) {
  std::vector<std::string> warnings;
  const auto ratio = [](double a, double b) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g times", a / b);
    return std::string(text);
  };
  const double gpu = parts.compute + parts.copies;
  if (parts.enqueue > gpu) {
    warnings.push_back("the host bounds the figures: putting a request into the stream takes it " +
                       ratio(parts.enqueue, gpu) + " as long as the GPU takes to run it");
  }
  if (parts.copies > parts.compute) {
    warnings.push_back("copies of inputs and outputs take " + ratio(parts.copies, parts.compute) +
                       " as long as the steps");
  }
  if (parts.compute_cv > kMostVariation) {
    warnings.push_back("the GPU's time varies by " + percent_text(parts.compute_cv) +
                       " (standard deviation over mean), more than " +
                       percent_text(kMostVariation) + ": fix the clocks, compare medians");
  }
  return warnings;
}

}  // namespace kiln::run
