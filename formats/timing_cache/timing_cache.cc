#include "formats/timing_cache/timing_cache.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/file/atomic_file.h"
#include "formats/file/mapped_file.h"
#include "formats/json/parse_json.h"

namespace kiln {
namespace {

using nlohmann::json;

constexpr int64_t kSchema = 1;
constexpr const char* kKind = "kiln-timing-cache";
constexpr size_t kMostFileBytes = size_t{1} << 30;

json timing_to_json(const Timing& timing) {
  return {{"median_us", timing.median_us},         {"spread_us", timing.spread_us},
          {"verified", timing.verified},           {"max_abs_error", timing.max_abs_error},
          {"max_rel_error", timing.max_rel_error}, {"error", timing.error}};
}

// A number that can be a time or an error; null is how one that was not finite is written.
std::optional<double> measure(const json& entry, const char* field) {
  const auto found = entry.find(field);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

std::optional<Timing> timing_from_json(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto median = measure(entry, "median_us"), spread = measure(entry, "spread_us"),
             max_abs = measure(entry, "max_abs_error"), max_rel = measure(entry, "max_rel_error");
  const auto verified = entry.find("verified"), error = entry.find("error");
  if (!median || !spread || !max_abs || !max_rel || verified == entry.end() ||
      !verified->is_boolean() || error == entry.end() || !error->is_string()) {
    return std::nullopt;
  }
  return Timing{*median,  *spread,  verified->get<bool>(),
                *max_abs, *max_rel, error->get<std::string>()};
}

// Fills `cache`; returns how many entries were damaged.
size_t read_environments(const json& environments, TimingCache& cache) {
  size_t damaged = 0;
  for (const auto& [environment, regions] : environments.items()) {
    if (!regions.is_object()) {
      ++damaged;
      continue;
    }
    for (const auto& [region, candidates] : regions.items()) {
      if (!candidates.is_object()) {
        ++damaged;
        continue;
      }
      for (const auto& [candidate, entry] : candidates.items()) {
        if (auto timing = timing_from_json(entry)) {
          cache.record(environment, region, candidate, *std::move(timing));
        } else {
          ++damaged;
        }
      }
    }
  }
  return damaged;
}

std::string unused_environments(const TimingCache& cache, std::string_view environment) {
  std::string names;
  for (const auto& [name, regions] : cache.environments) {
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  return "has no timings for '" + std::string(environment) + "', only for " + names +
         "; they are kept and not used";
}

// REQUIRES: the text is an object of this schema.
LoadedTimingCache read_document(const json& document, std::string_view environment) {
  LoadedTimingCache loaded;
  const auto environments = document.find("environments");
  if (environments == document.end() || !environments->is_object()) {
    loaded.notes.emplace_back("is damaged and was ignored: it has no object 'environments'");
    return loaded;
  }
  const size_t damaged = read_environments(*environments, loaded.cache);
  if (damaged > 0) {
    loaded.notes.push_back(std::to_string(damaged) + " damaged entries were ignored");
  }
  if (!loaded.cache.environments.empty() && !loaded.cache.environments.contains(environment)) {
    loaded.notes.push_back(unused_environments(loaded.cache, environment));
  }
  return loaded;
}

template <class Map>
const auto* find_in(const Map& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

const Timing* TimingCache::find(std::string_view environment, std::string_view region,
                                std::string_view candidate) const {
  const Regions* regions = find_in(environments, environment);
  const Candidates* candidates = regions == nullptr ? nullptr : find_in(*regions, region);
  return candidates == nullptr ? nullptr : find_in(*candidates, candidate);
}

void TimingCache::record(std::string_view environment, std::string_view region,
                         std::string_view candidate, Timing timing) {
  environments[std::string(environment)][std::string(region)].insert_or_assign(
      std::string(candidate), std::move(timing));
}

LoadedTimingCache parse_timing_cache(std::string_view text, std::string_view environment) {
  const auto ignored = [](std::string why) {
    return LoadedTimingCache{{}, {std::move(why) + "; it is left as it is"}, true};
  };
  const auto parsed = parse_json<json>(text);
  if (!parsed) return ignored("is damaged and was ignored: it " + parsed.error().message);
  const json& document = *parsed;
  if (!document.is_object()) return ignored("is damaged and was ignored: it is not a JSON object");
  if (document.value("kind", json()) != kKind) {
    return ignored("was ignored: it is not a timing cache");
  }
  const json schema = document.value("schema", json());
  if (schema != kSchema) {
    return ignored("was ignored: its schema is " + schema.dump() + ", this library reads " +
                   std::to_string(kSchema));
  }
  return read_document(document, environment);
}

LoadedTimingCache load_timing_cache(const std::filesystem::path& path,
                                    std::string_view environment) {
  LoadedTimingCache loaded;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return loaded;
  const auto file = map_file(path);
  if (!file) {
    loaded.notes.push_back(file.error().message);
    loaded.foreign = true;
  } else if (file->size() == 0) {
    return loaded;
  } else if (file->size() > kMostFileBytes) {
    loaded.foreign = true;
    loaded.notes.push_back("was ignored: it has " + std::to_string(file->size()) +
                           " bytes, expected at most " + std::to_string(kMostFileBytes));
  } else {
    loaded = parse_timing_cache({reinterpret_cast<const char*>(file->data()), file->size()},
                                environment);
  }
  const std::string where = "timing cache '" + path.string() + "' ";
  for (std::string& note : loaded.notes) note.insert(0, where);
  return loaded;
}

std::string to_json(const TimingCache& cache) {
  json environments = json::object();
  for (const auto& [environment, regions] : cache.environments) {
    for (const auto& [region, candidates] : regions) {
      for (const auto& [candidate, timing] : candidates) {
        environments[environment][region][candidate] = timing_to_json(timing);
      }
    }
  }
  const json document = {
      {"kind", kKind}, {"schema", kSchema}, {"environments", std::move(environments)}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<> save_timing_cache(const std::filesystem::path& path, const TimingCache& cache) {
  const std::string text = to_json(cache);
  const std::span<const std::byte> piece = std::as_bytes(std::span<const char>(text));
  return write_file_atomically(path, {&piece, 1});
}

}  // namespace kiln
