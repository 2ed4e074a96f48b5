// TimingCache: what builds found out on a device, kept from one build to the next. FORMAT.md has
// the JSON.
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

// What only the device's own machine can say, beside times.
struct RecordedAnswer {
  std::vector<std::string> values;
  std::string refusal;  // why there are none; "" otherwise
  friend bool operator==(const RecordedAnswer&, const RecordedAnswer&) = default;
};

// Environment -> region -> candidate. The environment names everything outside the region that a
// time depends on: device, library versions, provider versions. A region's key is its operations
// and types, a candidate's its provider and parameters. Entries of other environments are kept, so
// that one file serves several machines, and never used.
struct TimingCache {
  using Candidates = std::map<std::string, Timing, std::less<>>;
  using Regions = std::map<std::string, Candidates, std::less<>>;
  using Answers = std::map<std::string, RecordedAnswer, std::less<>>;  // by question
  struct Environment {
    Regions timings;
    Answers answers;
    // The device: what a build without it must know. Empty in files of schema 1.
    std::string device_name;
    std::map<std::string, uint64_t> device;
    friend bool operator==(const Environment&, const Environment&) = default;
  };
  std::map<std::string, Environment, std::less<>> environments;

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

// Never fails: a file that is absent gives an empty cache, one that is damaged or of a newer schema
// gives a note as well. Damaged entries are left out one by one.
LoadedTimingCache load_timing_cache(const std::filesystem::path& path);
LoadedTimingCache parse_timing_cache(std::string_view text);

// "has no timings for 'x', only for 'y'; they are kept and not used"; "" where it has some, or none
// at all.
std::string note_on_environment(const TimingCache& cache, std::string_view environment);

// Equal caches give equal text. Timings that are not finite are written as null and left out by
// the next load.
std::string to_json(const TimingCache& cache);
// Adds the cache to what the file holds by now, of which other builds may have written some; where
// both know a thing, `cache` counts. Replaces the file as a whole or leaves it as it was. Processes
// and threads that save to one file take turns. kIo, and kUnsupported: the file has come to hold
// something that must not be overwritten.
Result<> save_timing_cache(const std::filesystem::path& path, const TimingCache& cache);

}  // namespace kiln
