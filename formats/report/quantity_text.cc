#include "formats/report/quantity_text.h"

#include <array>
#include <cstdio>

namespace kiln::report {

std::string bytes_text(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string time_text(double us) {
  char text[40];
  if (us >= 1000) {
    std::snprintf(text, sizeof text, "%.2f ms", us / 1000);
  } else {
    std::snprintf(text, sizeof text, "%.1f us", us);
  }
  return text;
}

std::string hash_text(uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace kiln::report
