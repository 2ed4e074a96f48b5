// Statistics of a benchmark's measurements, and when not to believe them.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln::run {

// In the unit of the measurements. A percentile p is by nearest rank: the smallest measurement that
// at least p % of all measurements do not exceed, so it is always one that happened. The median of
// an even count is the mean of the middle two. `cv` is the coefficient of variation: the standard
// deviation (of the sample, n - 1) over the mean.
struct Summary {
  size_t count = 0;
  double min = 0, mean = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, max = 0, cv = 0;
};

// All zero for no measurements.
Summary summarize(std::span<const double> measurements);

// Thresholds of trust_warnings.
inline constexpr size_t kFewestQueries = 10;
inline constexpr double kMostVariation = 0.05;  // cv
inline constexpr double kMostDrift = 0.05;      // medians of the two halves, relative

// One line for each reason why the figures can't be trusted; `measurements` are latencies in the
// order they were taken.
std::vector<std::string> trust_warnings(std::span<const double> measurements);

// Medians, in one unit, of the parts of requests to a GPU.
struct PartMedians {
  double compute = 0, copies = 0, enqueue = 0;
  double compute_cv = 0;
};
// What makes a GPU's figures doubtful: a host that is slower than it, copies that outweigh the
// steps, a spread over kMostVariation.
std::vector<std::string> part_warnings(const PartMedians& parts);

}  // namespace kiln::run
