#include "formats/report/table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "formats/report/quantity_text.h"

namespace kiln::report {
namespace {

// snprintf into a string.
template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 512> text;
  const int length = std::snprintf(text.data(), text.size(), format, args...);
  return {text.data(), std::min(static_cast<size_t>(std::max(length, 0)), text.size() - 1)};
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

const Candidate* chosen_of(const Region& region) {
  const auto index = static_cast<size_t>(region.chosen);
  return region.chosen >= 0 && index < region.candidates.size() ? &region.candidates[index]
                                                                : nullptr;
}

// "compute capability 9.0, 4.80 TB/s, 67 TFLOPS f32, 494 tf32, 989 f16, 1979 8-bit (published);
// driver 13.0, ..."
std::string hardware_line(const Build& build) {
  constexpr double kTera = 1e12;
  const PeakRates& rates = build.peak_rates;
  std::string text = "compute capability " + build.compute_capability;
  if (!rates.source.empty()) {
    text += print(", %.2f TB/s, TFLOPS: %.0f f32, %.0f tf32, %.0f f16, %.0f 8-bit (",
                  rates.bytes_per_s / kTera, rates.f32_flops_per_s / kTera,
                  rates.tf32_flops_per_s / kTera, rates.f16_flops_per_s / kTera,
                  rates.byte_flops_per_s / kTera) +
            rates.source + ")";
  }
  std::string versions;
  for (const auto& [library, version] : build.versions) {
    versions += versions.empty() ? "\nversions: " : ", ";
    versions += library;
    versions += ' ';
    versions += version;
  }
  return text + versions + "\n";
}

std::string head(const Report& report) {
  const Build& build = report.build;
  std::string text = "Kiln " + build.kiln_version + ": " + build.model_name + " for " +
                     build.target + (build.device.empty() ? "" : " (" + build.device + ")") + ", " +
                     build.precision + ", " + (build.verified ? "verified" : "NOT VERIFIED") +
                     ", weights " + bytes_text(report.weights_bytes) + "\n";
  if (!build.compute_capability.empty()) text += hardware_line(build);
  if (!build.disabled_passes.empty()) {
    text += "passes off: " + join(build.disabled_passes, ", ") + "\n";
  }
  return text;
}

std::string point_line(const Point& point) {
  const Memory& memory = point.memory;
  std::string text = "\npoint " + point.name + ": " + std::to_string(point.regions.size()) +
                     " regions, " + time_text(point.sum_us) + " in kernels" +
                     (point.graph_us > 0 ? ", " + time_text(point.graph_us) + " as one" : "") +
                     ", arena " + bytes_text(memory.arena_bytes);
  if (memory.lower_bound_bytes > 0) {
    text += print(" (%.2f of its lower bound)", static_cast<double>(memory.arena_bytes) /
                                                    static_cast<double>(memory.lower_bound_bytes));
  }
  return text + "\n";
}

std::string region_line(const Region& region) {
  const Candidate* chosen = chosen_of(region);
  const double us = chosen != nullptr ? chosen->median_us : 0;
  const auto moved = static_cast<double>(region.bytes_read + region.bytes_written);
  const std::string tactic =
      chosen != nullptr ? chosen->provider + " " + chosen->key : std::string("alias");
  const std::string rate = us > 0 ? print("%8.2f", moved / us / 1000) : std::string(8, ' ');
  const std::string roofline =
      region.roofline_share > 0
          ? print("%4.0f%%%c", 100 * region.roofline_share,
                  region.roofline_bound.empty() ? ' ' : region.roofline_bound.front())
          : std::string(6, ' ');
  const std::string where = region.host_reason.empty() ? "" : "  (host)";
  return print("  %5.1f%% %10.1f %s %s %-11.11s %-4.4s %-22.22s ", 100 * region.time_share, us,
               rate.c_str(), roofline.c_str(), region.kind.c_str(),
               region.precision_realised.c_str(), tactic.c_str()) +
         region.name + (region.rule.empty() ? "" : "  [" + region.rule + "]") + where + "\n";
}

std::string host_lines(const Point& point) {
  std::string text;
  for (const Region& region : point.regions) {
    if (!region.host_reason.empty()) {
      text += "  on the host: " + region.name + ": " + region.host_reason + "\n";
    }
  }
  return text;
}

std::string candidate_lines(const Region& region) {
  std::string text;
  for (const Candidate& candidate : region.candidates) {
    constexpr std::array<const char*, 5> kMarks = {"chosen", "slower", "WRONG", "failed",
                                                   "skipped"};
    text += print("         %-7s %10.1f +-%-7.1f %-14.14s ",
                  kMarks[static_cast<size_t>(candidate.verdict)], candidate.median_us,
                  candidate.spread_us, candidate.provider.c_str()) +
            candidate.key + (candidate.reason.empty() ? "" : ": " + candidate.reason) + "\n";
  }
  for (const Refusal& refusal : region.refusals) {
    text += "         refused " + refusal.provider + ": " + refusal.reason + "\n";
  }
  if (!region.precision_reason.empty()) {
    text += "         precision " + region.precision_asked + " -> " + region.precision_realised +
            ": " + region.precision_reason + "\n";
  } else if (region.precision_damage >= 0) {
    text += "         precision " + region.precision_realised +
            print(": narrow alone it takes %.2g", region.precision_damage) + " off the cosine\n";
  }
  return text;
}

std::string region_table(const Point& point, const TableOptions& options) {
  std::vector<size_t> order(point.regions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  size_t shown = order.size();
  if (options.most_regions > 0 && options.most_regions < order.size()) {
    shown = options.most_regions;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const double x = point.regions[a].time_share, y = point.regions[b].time_share;
      return x != y ? x > y : a < b;
    });
  }
  std::string text =
      "   share         us     GB/s  roof  kind        type tactic                 origin [rule]\n";
  for (size_t i = 0; i < shown; ++i) {
    text += region_line(point.regions[order[i]]);
    if (options.explain) text += candidate_lines(point.regions[order[i]]);
  }
  if (shown < order.size()) {
    text += "  ... and " + std::to_string(order.size() - shown) + " more\n";
  }
  return text;
}

std::string near_miss_lines(const Point& point) {
  std::string text;
  for (const NearMiss& miss : point.near_misses) {
    text += "  not fused: " + miss.producer + " into " + miss.consumer + " (" + miss.rule +
            "): " + miss.reason + "\n";
  }
  return text;
}

std::string precision_line(const Point& point) {
  std::string text;
  for (const PrecisionShare& share : point.precision) {
    text += (text.empty() ? "  precision: " : ", ") + share.precision + " " +
            std::to_string(share.regions) + " regions, " +
            print("%.2f GFLOP", static_cast<double>(share.flops) / 1e9);
  }
  return text.empty() ? text : text + "\n";
}

std::string verification_lines(const Point& point) {
  std::string text;
  for (const Verification& check : point.verification) {
    text += std::string("  verified ") + (check.passed ? "ok" : "FAILED") + ": " + check.what +
            ", " + std::to_string(check.rows) + " rows, " +
            print("max error %.3g abs, %.3g rel, min cosine %.6f", check.max_abs_error,
                  check.max_rel_error, check.min_cosine) +
            (check.detail.empty() ? "" : "; " + check.detail) + "\n";
  }
  return text;
}

std::string memory_map(const Memory& memory) {
  std::string text = "  arena:     offset        bytes   steps      buffer\n";
  for (const MemoryBuffer& buffer : memory.buffers) {
    text +=
        print("        %12llu %12llu %5lld-%-5lld ", static_cast<unsigned long long>(buffer.offset),
              static_cast<unsigned long long>(buffer.bytes),
              static_cast<long long>(buffer.first_step), static_cast<long long>(buffer.last_step)) +
        buffer.name + (buffer.in_place_of.empty() ? "" : " in place of " + buffer.in_place_of) +
        "\n";
  }
  return text;
}

std::string stage_line(const Report& report) {
  std::string text;
  for (const Stage& stage : report.stages) {
    text += (text.empty() ? "\nbuild: " : ", ") + stage.name + print(" %.1f s", stage.seconds);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string to_table(const Report& report, const TableOptions& options) {
  std::string text = head(report);
  for (const Point& point : report.points) {
    text += point_line(point) + region_table(point, options);
    if (options.explain) text += near_miss_lines(point);
    text += host_lines(point) + precision_line(point) + verification_lines(point);
    if (options.memory_map) text += memory_map(point.memory);
  }
  text += stage_line(report);
  for (const std::string& note : report.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace kiln::report
