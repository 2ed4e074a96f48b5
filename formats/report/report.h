// Report: what a build did and why, as plain data. FORMAT.md has the JSON; to_table() prints it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/result.h"

namespace kiln::report {

enum class Verdict : uint8_t {
  kChosen,
  kSlower,   // right, but another candidate is faster
  kWrong,    // disagrees with the reference
  kFailed,   // could not be made ready or run
  kSkipped,  // not measured: the budget or a faster screen left it out
};

// One way to run a region that was tried.
struct Candidate {
  std::string provider, key;
  double median_us = 0, spread_us = 0;          // 0 when it was not timed
  double max_abs_error = 0, max_rel_error = 0;  // against the region's reference
  uint64_t workspace_bytes = 0;
  Verdict verdict = Verdict::kSkipped;
  std::string reason;  // one line: why it lost
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// A provider that offered nothing for a region, and why.
struct Refusal {
  std::string provider, reason;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// One kernel or library call at one shape point. Its number is that of the engine's steps.
struct Region {
  std::string name;
  std::vector<std::string> origins;  // the ONNX nodes
  std::string kind;                  // "loop", "contraction", ...
  std::string rule;                  // the fusion rule; "" for a single operation
  std::vector<std::string> types;    // "f32[8x768]", inputs, then outputs after "->"
  std::string precision_asked, precision_realised, precision_reason;
  double precision_damage = -1;  // what it takes off the cosine when narrow alone; -1: not measured
  uint64_t bytes_read = 0, bytes_written = 0, flops = 0;
  // The least time that the GPU's peak rates allow for these, over the chosen candidate's; above 1
  // where the L2 cache served what was counted as memory. 0: not known.
  double roofline_share = 0;
  std::string roofline_bound;  // "memory" or "compute"; "" if not known
  std::string host_reason;     // on target cuda, why it runs on the host; "": it does not
  std::vector<Candidate> candidates;
  std::vector<Refusal> refusals;
  int64_t chosen = -1;    // number in candidates; -1: needs none (an alias)
  double time_share = 0;  // of the point's sum of medians, 0 to 1
  friend bool operator==(const Region&, const Region&) = default;
};

// Two regions that could have been one.
struct NearMiss {
  std::string producer, consumer, rule, reason;
  friend bool operator==(const NearMiss&, const NearMiss&) = default;
};

struct MemoryBuffer {
  std::string name;
  uint64_t offset = 0, bytes = 0;
  int64_t first_step = 0, last_step = 0;
  std::string in_place_of;  // the buffer whose bytes it took over; "" for none
  friend bool operator==(const MemoryBuffer&, const MemoryBuffer&) = default;
};

struct Memory {
  uint64_t arena_bytes = 0, lower_bound_bytes = 0;
  uint64_t workspace_bytes = 0;  // the largest workspace, part of the arena
  std::vector<MemoryBuffer> buffers;
  friend bool operator==(const Memory&, const Memory&) = default;
};

// One comparison of the finished engine with the reference.
struct Verification {
  std::string what;  // "random rows", "first and last row", "verify data 'x.npz'", ...
  int64_t rows = 0;
  double max_abs_error = 0, max_rel_error = 0;
  double min_cosine = 1;
  bool passed = false;
  std::string detail;  // the output and the row that were worst
  friend bool operator==(const Verification&, const Verification&) = default;
};

// How much of the work runs in one precision.
struct PrecisionShare {
  std::string precision;
  uint64_t regions = 0, flops = 0, bytes = 0;
  friend bool operator==(const PrecisionShare&, const PrecisionShare&) = default;
};

struct PassRun {
  std::string name;
  bool changed = false;
  int64_t rewrites = 0;
  friend bool operator==(const PassRun&, const PassRun&) = default;
};

struct Point {
  std::string name;
  int64_t batch = 0;    // 0: no batch dimension
  double sum_us = 0;    // of the chosen candidates' medians, each run alone
  double graph_us = 0;  // of all of them as the engine runs them; 0: not measured
  std::vector<Region> regions;
  std::vector<NearMiss> near_misses;
  std::vector<PassRun> passes;
  Memory memory;
  std::vector<Verification> verification;
  std::vector<PrecisionShare> precision;
  friend bool operator==(const Point&, const Point&) = default;
};

// What a device does at most in a second; 0: not known.
struct PeakRates {
  double bytes_per_s = 0;  // of its memory
  // Dense products by the type of their operands; `byte` is of 8-bit floats and integers.
  double f32_flops_per_s = 0, tf32_flops_per_s = 0, f16_flops_per_s = 0, byte_flops_per_s = 0;
  std::string source;  // "published" or "from clocks"; "" if nothing is known
  friend bool operator==(const PeakRates&, const PeakRates&) = default;
};

struct Build {
  std::string kiln_version, model_name, model_hash;
  std::string target, device;
  std::string compute_capability;  // "9.0"; "" on the host
  PeakRates peak_rates;
  std::string precision;  // as asked for
  std::vector<std::string> disabled_passes;
  std::vector<std::pair<std::string, std::string>> versions;  // library, version
  bool verified = false;
  friend bool operator==(const Build&, const Build&) = default;
};

// Seconds that a stage of the build took.
struct Stage {
  std::string name;
  double seconds = 0;
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct Report {
  Build build;
  std::vector<Point> points;
  uint64_t weights_bytes = 0;
  std::vector<std::string> notes;
  // Wall-clock times. Left empty in the copy that an engine stores, so that the same timing cache
  // and inputs give the same bytes.
  std::vector<Stage> stages;
  friend bool operator==(const Report&, const Report&) = default;
};

// Numbers that are not finite become null.
std::string to_json(const Report& report);
// Fields that are absent keep their default and unknown ones are passed over. kCorruptData names
// the field, found and expected; kVersionMismatch if the schema is newer than this library's.
Result<Report> from_json(std::string_view text);

}  // namespace kiln::report
