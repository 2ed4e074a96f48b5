#include "builder/codegen/cuda/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln::codegen {
namespace {

constexpr std::array<std::string_view, kFamilyCount> kFamilies = {"points", "rows", "columns",
                                                                  "tiles", "split"};

struct Field {
  std::string_view name;
  uint32_t CudaSchedule::* member;
};
constexpr std::array<Field, 4> kFields = {{{"threads", &CudaSchedule::threads},
                                           {"vector", &CudaSchedule::vector},
                                           {"unroll", &CudaSchedule::unroll},
                                           {"group", &CudaSchedule::group}}};

struct Flag {
  std::string_view name;
  bool CudaSchedule::* member;
};
constexpr std::array<Flag, 2> kFlags = {
    {{"keep", &CudaSchedule::keep}, {"stream", &CudaSchedule::stream}}};

std::optional<Family> parse_family(std::string_view text) {
  for (size_t f = 0; f < kFamilies.size(); ++f) {
    if (kFamilies[f] == text) return static_cast<Family>(f);
  }
  return std::nullopt;
}

bool parse_field(std::string_view word, CudaSchedule& schedule) {
  for (const Field& field : kFields) {
    if (!word.starts_with(field.name) || !word.substr(field.name.size()).starts_with('=')) continue;
    const std::string_view digits = word.substr(field.name.size() + 1);
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, schedule.*field.member);
    return parsed.ec == std::errc{} && parsed.ptr == end;
  }
  return false;
}

}  // namespace

std::string_view to_string(Family family) { return kFamilies[static_cast<size_t>(family)]; }

std::string to_text(const CudaSchedule& schedule) {
  std::string text(to_string(schedule.family));
  for (const Field& field : kFields) {
    text += " " + std::string(field.name) + "=" + std::to_string(schedule.*field.member);
  }
  for (const Flag& flag : kFlags) {
    if (schedule.*flag.member) text += " " + std::string(flag.name);
  }
  return text;
}

std::optional<CudaSchedule> parse_cuda_schedule(std::string_view text) {
  CudaSchedule schedule;
  const auto next_word = [&] {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return word;
  };
  const auto family = parse_family(next_word());
  if (!family) return std::nullopt;
  schedule.family = *family;
  while (!text.empty()) {
    const std::string_view word = next_word();
    const auto flag = std::ranges::find(kFlags, word, &Flag::name);
    if (flag != kFlags.end())
      schedule.*flag->member = true;
    else if (!parse_field(word, schedule))
      return std::nullopt;
  }
  return schedule;
}

}  // namespace kiln::codegen
