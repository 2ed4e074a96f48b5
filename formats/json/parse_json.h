// JSON from untrusted text.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/result.h"

namespace kiln {

// nlohmann's library copies, compares and prints values by recursion: deeper text would overflow
// the stack there, though not in its parser.
inline constexpr size_t kMostJsonDepth = 64;

// How deep brackets nest, those in strings aside.
inline size_t json_depth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

// kCorruptData: "is no JSON", "nests 90 deep, expected at most 64". Json is nlohmann::json or
// ordered_json.
template <class Json>
Result<Json> parse_json(std::string_view text) {
  if (const size_t depth = json_depth(text); depth > kMostJsonDepth) {
    return Error{ErrorCode::kCorruptData, "nests " + std::to_string(depth) +
                                              " deep, expected at most " +
                                              std::to_string(kMostJsonDepth)};
  }
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return Error{ErrorCode::kCorruptData, "is no JSON"};
  return parsed;
}

}  // namespace kiln
