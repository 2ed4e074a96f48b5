// What became of one case.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::conformance {

enum class Status : uint8_t { kPassed, kFailed, kRefused, kCrashed };

constexpr std::string_view to_string(Status status) {
  constexpr std::string_view kNames[] = {"passed", "failed", "refused", "crashed"};
  return kNames[static_cast<size_t>(status)];
}

struct Outcome {
  Status status = Status::kFailed;
  std::string reason;  // empty when passed
  double seconds = 0;
  double megabytes = 0;  // the process's peak
};

}  // namespace kiln::conformance
