#include "builder/clean/view_digits.h"

#include <algorithm>
#include <numeric>

namespace kiln::clean {

ViewDigits::ViewDigits(const Shape& source) : source_(source) {
  for (size_t i = 0; i < source.size(); ++i) {
    groups_.emplace_back();
    if (source[i] == 1) continue;
    groups_.back().digits.push_back(extents_.size());
    extents_.push_back(source[i]);
    source_dims_.push_back(i);
  }
}

void ViewDigits::transpose(const std::vector<int64_t>& perm) {
  std::vector<Group> moved;
  for (int64_t axis : perm) moved.push_back(groups_[static_cast<size_t>(axis)]);
  groups_ = std::move(moved);
}

// Digit d becomes an outer digit of extent `outer` and an inner one right behind it.
void ViewDigits::split(size_t digit, int64_t outer) {
  const auto at = static_cast<ptrdiff_t>(digit);
  const int64_t inner = extents_[digit] / outer;
  extents_[digit] = outer;
  extents_.insert(extents_.begin() + at + 1, inner);
  source_dims_.insert(source_dims_.begin() + at + 1, source_dims_[digit]);
  for (Group& group : groups_) {
    for (size_t& d : group.digits) d += d > digit;
    const auto found = std::find(group.digits.begin(), group.digits.end(), digit);
    if (found != group.digits.end()) group.digits.insert(found + 1, digit + 1);
  }
}

std::vector<size_t> ViewDigits::sequence() const {
  std::vector<size_t> order;
  for (const Group& group : groups_) {
    order.insert(order.end(), group.digits.begin(), group.digits.end());
  }
  return order;
}

bool ViewDigits::reshape(const Shape& shape) {
  std::vector<Group> regrouped;
  size_t taken = 0;  // digits of the sequence that are in `regrouped`
  for (int64_t extent : shape) {
    std::vector<size_t> digits;
    for (int64_t missing = extent; missing > 1;) {
      const auto order = sequence();
      const size_t digit = order[taken];
      if (missing % extents_[digit] != 0) {
        if (extents_[digit] % missing != 0) return false;
        split(digit, missing);
        for (Group& group : regrouped) {
          for (size_t& d : group.digits) d += d > digit;
        }
        for (size_t& d : digits) d += d > digit;
      }
      digits.push_back(digit);
      missing /= extents_[digit];
      ++taken;
    }
    regrouped.push_back({std::move(digits)});
  }
  groups_ = std::move(regrouped);
  return true;
}

Shape ViewDigits::view_shape() const {
  Shape shape;
  for (const Group& group : groups_) {
    int64_t extent = 1;
    for (size_t digit : group.digits) extent *= extents_[digit];
    shape.push_back(extent);
  }
  return shape;
}

// The permutation, if every dim of the view is one whole dim of the source.
std::optional<std::vector<int64_t>> ViewDigits::as_transpose() const {
  if (groups_.size() != source_.size()) return std::nullopt;
  std::vector<int64_t> perm(groups_.size(), -1);
  std::vector<bool> used(source_.size(), false);
  const Shape shape = view_shape();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto& digits = groups_[i].digits;
    if (digits.empty()) continue;
    const size_t dim = source_dims_[digits.front()];
    if (shape[i] != source_[dim] || !std::is_sorted(digits.begin(), digits.end())) {
      return std::nullopt;
    }
    for (size_t digit : digits) {
      if (source_dims_[digit] != dim) return std::nullopt;
    }
    perm[i] = static_cast<int64_t>(dim);
    used[dim] = true;
  }
  for (int64_t& axis : perm) {  // extents of 1 fill the gaps in order
    if (axis >= 0) continue;
    axis = std::find(used.begin(), used.end(), false) - used.begin();
    used[static_cast<size_t>(axis)] = true;
  }
  return perm;
}

std::vector<ViewDigits::Run> ViewDigits::runs() const {
  std::vector<Run> found;
  for (size_t digit : sequence()) {
    if (!found.empty() && found.back().last + 1 == digit) {
      found.back().last = digit;
    } else {
      found.push_back({digit, digit});
    }
  }
  return found;
}

std::vector<ir::Op> ViewDigits::shortest_chain() const {
  const Shape target = view_shape();
  const auto order = sequence();
  if (std::is_sorted(order.begin(), order.end())) {
    if (target == source_) return {};
    return {ir::Reshape{target}};
  }
  if (auto perm = as_transpose()) return {ir::Transpose{std::move(*perm)}};
  // Reshape to runs, permute the runs, reshape to the view; either reshape may be idle.
  const auto view_order = runs();
  std::vector<size_t> by_source(view_order.size());
  std::iota(by_source.begin(), by_source.end(), size_t{0});
  std::sort(by_source.begin(), by_source.end(),
            [&](size_t a, size_t b) { return view_order[a].first < view_order[b].first; });
  Shape split, permuted;
  std::vector<int64_t> perm(view_order.size());
  for (size_t i = 0; i < by_source.size(); ++i) {
    const Run run = view_order[by_source[i]];
    int64_t extent = 1;
    for (size_t digit = run.first; digit <= run.last; ++digit) extent *= extents_[digit];
    split.push_back(extent);
    perm[by_source[i]] = static_cast<int64_t>(i);
  }
  for (int64_t axis : perm) permuted.push_back(split[static_cast<size_t>(axis)]);
  std::vector<ir::Op> chain;
  if (split != source_) chain.push_back(ir::Reshape{split});
  chain.push_back(ir::Transpose{perm});
  if (permuted != target) chain.push_back(ir::Reshape{target});
  return chain;
}

}  // namespace kiln::clean
