#include "formats/timing_cache/timing_cache.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/file/atomic_file.h"
#include "formats/file/folder_lock.h"
#include "formats/file/mapped_file.h"
#include "formats/json/parse_json.h"

namespace kiln {
namespace {

using nlohmann::json;

constexpr int64_t kSchema = 2;  // what is written; 1 is read, too
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

std::optional<RecordedAnswer> answer_from_json(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto values = entry.find("values"), refusal = entry.find("refusal");
  if (values == entry.end() || !values->is_array() || refusal == entry.end() ||
      !refusal->is_string()) {
    return std::nullopt;
  }
  RecordedAnswer answer{{}, refusal->get<std::string>()};
  for (const json& value : *values) {
    if (!value.is_string()) return std::nullopt;
    answer.values.push_back(value.get<std::string>());
  }
  return answer;
}

// Reads one environment; counts what is damaged.
class EnvironmentReader {
 public:
  TimingCache::Environment read(const json& entry, bool has_parts) {
    TimingCache::Environment environment;
    if (!has_parts) {  // schema 1: nothing but timings
      read_timings(entry, environment.timings);
      return environment;
    }
    if (const json* timings = part(entry, "timings")) read_timings(*timings, environment.timings);
    if (const json* answers = part(entry, "answers")) read_answers(*answers, environment.answers);
    if (const json* device = part(entry, "device")) read_device(*device, environment);
    return environment;
  }
  size_t damaged() const { return damaged_; }

 private:
  const json* part(const json& entry, const char* name) {
    const auto found = entry.find(name);
    if (found != entry.end() && found->is_object()) return &*found;
    ++damaged_;
    return nullptr;
  }

  void read_timings(const json& entry, TimingCache::Regions& regions) {
    if (!entry.is_object()) {
      ++damaged_;
      return;
    }
    for (const auto& [region, candidates] : entry.items()) {
      if (!candidates.is_object()) {
        ++damaged_;
        continue;
      }
      for (const auto& [candidate, timing] : candidates.items()) {
        if (auto read = timing_from_json(timing)) {
          regions[region].emplace(candidate, *std::move(read));
        } else {
          ++damaged_;
        }
      }
    }
  }

  void read_answers(const json& entry, TimingCache::Answers& answers) {
    for (const auto& [question, answer] : entry.items()) {
      if (auto read = answer_from_json(answer)) {
        answers.emplace(question, *std::move(read));
      } else {
        ++damaged_;
      }
    }
  }

  static void read_device(const json& entry, TimingCache::Environment& environment) {
    for (const auto& [field, value] : entry.items()) {
      if (field == "name") {
        if (value.is_string()) environment.device_name = value;
      } else if (value.is_number_unsigned()) {
        environment.device[field] = value.get<uint64_t>();
      }
    }
  }

  size_t damaged_ = 0;
};

// REQUIRES: the text is an object of a schema that this library knows.
LoadedTimingCache read_document(const json& document, bool has_parts) {
  LoadedTimingCache loaded;
  if (!has_parts) {
    loaded.notes.emplace_back(
        "has schema 1, of an older Kiln: its timings count where the device and all versions are "
        "the same; without a description of the device it does not serve a build away from it");
  }
  const auto environments = document.find("environments");
  if (environments == document.end() || !environments->is_object()) {
    loaded.notes.emplace_back("is damaged and was ignored: it has no object 'environments'");
    return loaded;
  }
  EnvironmentReader reader;
  for (const auto& [name, entry] : environments->items()) {
    loaded.cache.environments[name] = reader.read(entry, has_parts);
  }
  if (reader.damaged() > 0) {
    loaded.notes.push_back(std::to_string(reader.damaged()) + " damaged entries were ignored");
  }
  return loaded;
}

template <class Map>
const auto* find_in(const Map& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// Adds to `to` what it does not know.
void add(TimingCache::Environment from, TimingCache::Environment& to) {
  for (auto& [region, candidates] : from.timings) to.timings[region].merge(candidates);
  to.answers.merge(from.answers);
  if (!to.device_name.empty()) return;
  to.device_name = std::move(from.device_name);
  to.device = std::move(from.device);
}

}  // namespace

const Timing* TimingCache::find(std::string_view environment, std::string_view region,
                                std::string_view candidate) const {
  const Environment* known = find_in(environments, environment);
  const Candidates* candidates = known == nullptr ? nullptr : find_in(known->timings, region);
  return candidates == nullptr ? nullptr : find_in(*candidates, candidate);
}

void TimingCache::record(std::string_view environment, std::string_view region,
                         std::string_view candidate, Timing timing) {
  environments[std::string(environment)].timings[std::string(region)].insert_or_assign(
      std::string(candidate), std::move(timing));
}

LoadedTimingCache parse_timing_cache(std::string_view text) {
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
  if (schema != 1 && schema != kSchema) {
    return ignored("was ignored: its schema is " + schema.dump() + ", this library reads 1 to " +
                   std::to_string(kSchema));
  }
  return read_document(document, schema != 1);
}

LoadedTimingCache load_timing_cache(const std::filesystem::path& path) {
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
    loaded = parse_timing_cache({reinterpret_cast<const char*>(file->data()), file->size()});
  }
  const std::string where = "timing cache '" + path.string() + "' ";
  for (std::string& note : loaded.notes) note.insert(0, where);
  return loaded;
}

std::string note_on_environment(const TimingCache& cache, std::string_view environment) {
  if (cache.environments.empty() || cache.environments.contains(environment)) return "";
  std::string names;
  for (const auto& [name, entry] : cache.environments) {
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  return "has no timings for '" + std::string(environment) + "', only for " + names +
         "; they are kept and not used";
}

std::string to_json(const TimingCache& cache) {
  json environments = json::object();
  for (const auto& [name, environment] : cache.environments) {
    json timings = json::object(), answers = json::object(), device = json::object();
    for (const auto& [region, candidates] : environment.timings) {
      for (const auto& [candidate, timing] : candidates) {
        timings[region][candidate] = timing_to_json(timing);
      }
    }
    for (const auto& [question, answer] : environment.answers) {
      answers[question] = {{"values", answer.values}, {"refusal", answer.refusal}};
    }
    for (const auto& [field, number] : environment.device) device[field] = number;
    device["name"] = environment.device_name;
    environments[name] = {{"timings", std::move(timings)},
                          {"answers", std::move(answers)},
                          {"device", std::move(device)}};
  }
  const json document = {
      {"kind", kKind}, {"schema", kSchema}, {"environments", std::move(environments)}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<> save_timing_cache(const std::filesystem::path& path, const TimingCache& cache) {
  std::error_code ignored;
  const FolderLock lock(std::filesystem::weakly_canonical(path, ignored).parent_path());
  LoadedTimingCache there = load_timing_cache(path);
  if (there.foreign) {
    return Error{ErrorCode::kUnsupported,
                 "'" + path.string() + "' was replaced meanwhile: " + there.notes.front()};
  }
  TimingCache all = cache;
  for (auto& [name, environment] : there.cache.environments) {
    add(std::move(environment), all.environments[name]);
  }
  const std::string text = to_json(all);
  const std::span<const std::byte> piece = std::as_bytes(std::span<const char>(text));
  return write_file_atomically(path, {&piece, 1});
}

}  // namespace kiln
