#include "formats/operation/operation.h"

#include <algorithm>
#include <bit>

namespace kiln {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_value(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* real = std::get_if<double>(&a)) return same_bits(*real, std::get<double>(b));
  if (const auto* reals = std::get_if<std::vector<double>>(&a)) {
    return std::ranges::equal(*reals, std::get<std::vector<double>>(b), same_bits);
  }
  return a == b;
}

template <class T>
T value_or(const AttributeValue* value, const T& fallback) {
  const T* found = value ? std::get_if<T>(value) : nullptr;
  return found ? *found : fallback;
}

}  // namespace

Operation& Operation::set(std::string_view key, AttributeValue value) {
  auto at = std::ranges::lower_bound(attributes, key, {},
                                     [](const auto& pair) { return std::string_view(pair.first); });
  if (at != attributes.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    attributes.emplace(at, std::string(key), std::move(value));
  }
  return *this;
}

const AttributeValue* Operation::find(std::string_view key) const {
  auto at = std::ranges::find(attributes, key,
                              [](const auto& pair) { return std::string_view(pair.first); });
  return at == attributes.end() ? nullptr : &at->second;
}

int64_t Operation::get_int(std::string_view key, int64_t fallback) const {
  return value_or<int64_t>(find(key), fallback);
}

double Operation::get_double(std::string_view key, double fallback) const {
  return value_or<double>(find(key), fallback);
}

std::string Operation::get_string(std::string_view key, std::string_view fallback) const {
  return value_or<std::string>(find(key), std::string(fallback));
}

std::vector<int64_t> Operation::get_ints(std::string_view key) const {
  return value_or<std::vector<int64_t>>(find(key), {});
}

std::vector<double> Operation::get_doubles(std::string_view key) const {
  return value_or<std::vector<double>>(find(key), {});
}

bool operator==(const Operation& a, const Operation& b) {
  return a.name == b.name &&
         std::ranges::equal(a.attributes, b.attributes, [](const auto& x, const auto& y) {
           return x.first == y.first && same_value(x.second, y.second);
         });
}

}  // namespace kiln
