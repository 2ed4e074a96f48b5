// TimingCache: measured tactics, kept from one build to the next. FORMAT.md has the JSON.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/result.h"

namespace kiln {

// One candidate's measurement.
struct Timing {
  double median_us = 0, spread_us = 0;
  bool verified = false;  // its output agreed with the reference
  double max_abs_error = 0, max_rel_error = 0;
  std::string error;  // why it could not be measured or was wrong; "" when it is fine
  friend bool operator==(const Timing&, const Timing&) = default;
};

// Environment -> region -> candidate. The environment names everything outside the region that a
// time depends on: device, library versions, provider versions. A region's key is its operations
// and types, a candidate's its provider and parameters. Entries of other environments are kept, so
// that one file serves several machines, and never used.
struct TimingCache {
  using Candidates = std::map<std::string, Timing, std::less<>>;
  using Regions = std::map<std::string, Candidates, std::less<>>;
  std::map<std::string, Regions, std::less<>> environments;

  const Timing* find(std::string_view environment, std::string_view region,
                     std::string_view candidate) const;
  void record(std::string_view environment, std::string_view region, std::string_view candidate,
              Timing timing);
  friend bool operator==(const TimingCache&, const TimingCache&) = default;
};

struct LoadedTimingCache {
  TimingCache cache;
  std::vector<std::string> notes;  // what was ignored and why, for the report
  bool foreign = false;  // the file holds something else, or a newer schema: not to be overwritten
};

// Never fails: a file that is absent gives an empty cache, one that is damaged, of another schema
// or made for other environments only gives a note as well. Damaged entries are left out one by
// one.
LoadedTimingCache load_timing_cache(const std::filesystem::path& path,
                                    std::string_view environment);
LoadedTimingCache parse_timing_cache(std::string_view text, std::string_view environment);

// Equal caches give equal text. Timings that are not finite are written as null and left out by
// the next load.
std::string to_json(const TimingCache& cache);
// Replaces the file as a whole or leaves it as it was.
Result<> save_timing_cache(const std::filesystem::path& path, const TimingCache& cache);

}  // namespace kiln
