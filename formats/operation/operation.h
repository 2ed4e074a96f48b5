// Operation: a name and its attributes. It is how a host step in an engine file says what to
// compute, how kiln_host's kernels are asked for, and how the builder's IR prints its nodes.
// The meaning of each name is in engine/host/OPERATIONS.md.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/result.h"

namespace kiln {

// A string may hold any bytes (an encoded loop kernel, for one).
using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, std::vector<std::string>>;

struct Operation {
  std::string name;
  std::vector<std::pair<std::string, AttributeValue>> attributes;  // sorted by name, unique

  // Inserts or replaces; keeps the order.
  Operation& set(std::string_view key, AttributeValue value);
  const AttributeValue* find(std::string_view key) const;

  // The attribute of that name and type, or the fallback when it is absent or of another type.
  int64_t get_int(std::string_view key, int64_t fallback) const;
  double get_double(std::string_view key, double fallback) const;
  std::string get_string(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> get_ints(std::string_view key) const;
  std::vector<double> get_doubles(std::string_view key) const;

  // Doubles are compared by their bits, so that NaN equals itself and -0 differs from 0.
  friend bool operator==(const Operation& a, const Operation& b);
};

// `resize{mode="linear", scales=[1.0, 2.0]}`; doubles print so that they parse back exactly.
std::string to_text(const Operation& operation);
// Parses what to_text prints; `text` is advanced past it.
Result<Operation> parse_operation(std::string_view& text);

// A compact binary form; decode refuses anything that encode cannot have made.
std::string encode(const Operation& operation);
Result<Operation> decode_operation(std::span<const std::byte> bytes);

}  // namespace kiln
