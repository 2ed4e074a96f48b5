#include "builder/ir/type_rules/checks.h"

#include <algorithm>

namespace kiln::ir {

Error reject(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Inferred one(TensorType type) {
  if (!checked_element_count(type.shape)) return reject("the result is too large");
  return std::vector<TensorType>{std::move(type)};
}

Result<> expect_count(Types in, size_t least, size_t most) {
  if (in.size() >= least && in.size() <= most) return Ok();
  return reject("found " + std::to_string(in.size()) + " inputs, expected " +
                std::to_string(least) + (most == least ? "" : " to " + std::to_string(most)));
}

Result<> expect_size(const std::vector<int64_t>& list, int64_t size, const char* what) {
  if (static_cast<int64_t>(list.size()) == size) return Ok();
  return reject(std::string(what) + " has " + std::to_string(list.size()) + " entries, expected " +
                std::to_string(size));
}

Result<> expect_axis(int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank) return Ok();
  return reject("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return reject("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace kiln::ir
