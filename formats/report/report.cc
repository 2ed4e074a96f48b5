#include "formats/report/report.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/json/parse_json.h"
#include "formats/report/fields.h"

namespace kiln::report {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kSchema = 1;
constexpr const char* kKind = "kiln-build-report";
constexpr std::array<std::string_view, 5> kVerdicts = {"chosen", "slower", "wrong", "failed",
                                                       "skipped"};

template <class T>
concept Struct = requires(T& value) { walk_fields(value, [](const char*, auto&) {}); };

ordered_json write(const std::string& value) { return value; }
ordered_json write(bool value) { return value; }
ordered_json write(std::signed_integral auto value) { return static_cast<int64_t>(value); }
ordered_json write(std::unsigned_integral auto value) { return static_cast<uint64_t>(value); }
ordered_json write(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}
ordered_json write(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }
ordered_json write(const std::pair<std::string, std::string>& pair) {
  return ordered_json::array({pair.first, pair.second});
}
template <class T>
ordered_json write(const std::vector<T>& values);

template <Struct T>
ordered_json write(const T& value) {
  ordered_json object = ordered_json::object();
  walk_fields(value, [&](const char* name, const auto& field) { object[name] = write(field); });
  return object;
}

template <class T>
ordered_json write(const std::vector<T>& values) {
  ordered_json array = ordered_json::array();
  for (const auto& value : values) array.push_back(write(value));
  return array;
}

// Fills structs from JSON and keeps the first thing that does not fit, with its path.
class Reader {
 public:
  const std::string& error() const { return error_; }

  void read(const ordered_json& from, std::string& to) {
    if (expect(from.is_string(), from, "a string")) to = from.get<std::string>();
  }
  void read(const ordered_json& from, bool& to) {
    if (expect(from.is_boolean(), from, "true or false")) to = from.get<bool>();
  }
  void read(const ordered_json& from, int64_t& to) {
    const bool fits = from.is_number_integer() &&
                      (!from.is_number_unsigned() ||
                       from.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (expect(fits, from, "an integer")) to = from.get<int64_t>();
  }
  void read(const ordered_json& from, uint64_t& to) {
    if (expect(from.is_number_unsigned(), from, "an integer of 0 or more")) {
      to = from.get<uint64_t>();
    }
  }
  void read(const ordered_json& from, double& to) {
    if (from.is_null()) {
      to = std::numeric_limits<double>::quiet_NaN();
    } else if (expect(from.is_number(), from, "a number or null")) {
      to = from.get<double>();
    }
  }
  void read(const ordered_json& from, Verdict& to) {
    for (size_t i = 0; i < kVerdicts.size(); ++i) {
      if (from.is_string() && from == kVerdicts[i]) {
        to = static_cast<Verdict>(i);
        return;
      }
    }
    expect(false, from, "a verdict");
  }
  void read(const ordered_json& from, std::pair<std::string, std::string>& to) {
    if (!expect(from.is_array() && from.size() == 2, from, "a pair of strings")) return;
    read(from[0], to.first);
    read(from[1], to.second);
  }
  template <class T>
  void read(const ordered_json& from, std::vector<T>& to) {
    if (!expect(from.is_array(), from, "an array")) return;
    for (size_t i = 0; i < from.size() && error_.empty(); ++i) {
      at("[" + std::to_string(i) + "]", [&] { read(from[i], to.emplace_back()); });
    }
  }
  template <Struct T>
  void read(const ordered_json& from, T& to) {
    if (!expect(from.is_object(), from, "an object")) return;
    walk_fields(to, [&](const char* name, auto& field) {
      const auto found = from.find(name);
      if (found == from.end() || !error_.empty()) return;
      at(std::string(".") + name, [&] { read(*found, field); });
    });
  }

 private:
  void at(const std::string& piece, auto&& body) {
    const size_t length = path_.size();
    path_ += piece;
    body();
    path_.resize(length);
  }

  bool expect(bool holds, const ordered_json& found, const char* expected) {
    if (!holds && error_.empty()) {
      error_ = "report" + path_ + " is " + found.type_name() + ", expected " + expected;
    }
    return holds;
  }

  std::string path_, error_;
};

}  // namespace

std::string to_json(const Report& report) {
  ordered_json document = {{"kind", kKind}, {"schema", kSchema}};
  document.update(write(report));
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Report> from_json(std::string_view text) {
  const auto corrupt = [](std::string message) {
    return Error{ErrorCode::kCorruptData, std::move(message)};
  };
  const auto parsed = parse_json<ordered_json>(text);
  if (!parsed) return corrupt("report " + parsed.error().message);
  const ordered_json& document = *parsed;
  if (!document.is_object()) return corrupt("report is not a JSON object");
  if (document.value("kind", ordered_json()) != kKind) {
    return corrupt("report.kind is not '" + std::string(kKind) + "'");
  }
  const auto schema = document.value("schema", ordered_json());
  if (!schema.is_number_unsigned()) return corrupt("report.schema is not a number");
  if (schema.get<uint64_t>() > uint64_t{kSchema}) {
    return Error{ErrorCode::kVersionMismatch, "report has schema " + schema.dump() +
                                                  ", this library reads 1 to " +
                                                  std::to_string(kSchema) + "; update Kiln"};
  }
  Report report;
  Reader reader;
  reader.read(document, report);
  if (!reader.error().empty()) return corrupt(reader.error());
  return report;
}

}  // namespace kiln::report
