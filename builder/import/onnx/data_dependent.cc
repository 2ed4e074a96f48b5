// Operators whose output shape depends on values: they are evaluated here, so the inputs that
// decide must be known when building.
#include <algorithm>
#include <map>
#include <numeric>

#include "builder/import/onnx/handlers.h"

namespace kiln::onnx_import {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

int64_t count(size_t size) { return static_cast<int64_t>(size); }

ValueId int_matrix(NodeContext& c, const std::vector<int64_t>& values, Shape shape) {
  return c.reshape(c.ints(values), std::move(shape));
}

// Coordinates of the elements that are not zero: one row an axis, one column an element.
Outputs non_zero(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const HostTensor x, c.known(0, "the input"));
  const auto values = to_doubles(x);
  std::vector<int64_t> hits;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) hits.push_back(count(i));  // NaN too
  }
  const Shape strides = row_major_strides(x.type.shape);
  std::vector<int64_t> coordinates;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    for (int64_t hit : hits) coordinates.push_back(hit / strides[axis] % x.type.shape[axis]);
  }
  return one(int_matrix(c, coordinates, {x.type.rank(), count(hits.size())}));
}

Outputs compress(NodeContext& c) {
  ValueId x = c.input(0);
  int64_t axis = 0;
  if (c.has_attribute("axis")) {
    KILN_ASSIGN_OR_RETURN(axis, c.axis("axis", 0, c.rank(x)));
  } else {
    x = c.reshape(x, {c.type(x).elements()});
  }
  KILN_ASSIGN_OR_RETURN(const auto condition, c.known_ints(1, "condition"));
  const int64_t extent = c.shape(x).at(at(axis));
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) continue;
    if (count(i) >= extent) {
      return c.fail("condition selects index " + std::to_string(i) + " of an axis with extent " +
                    std::to_string(extent));
    }
    kept.push_back(count(i));
  }
  return one(c.gather(x, c.ints(kept), axis));
}

// Rows along one axis, as numbers that compare like the elements.
template <class T>
std::vector<std::vector<T>> rows_along(const std::vector<T>& values, const Shape& shape,
                                       int64_t axis) {
  const int64_t rows = shape[at(axis)];
  const int64_t inner = element_count({shape.begin() + axis + 1, shape.end()});
  std::vector<std::vector<T>> result(at(rows));
  for (size_t i = 0; i < values.size(); ++i)
    result[at(count(i) / inner % rows)].push_back(values[i]);
  return result;
}

struct Uniques {
  std::vector<int64_t> first, inverse, counts;
};

template <class T>
Uniques find_uniques(const std::vector<std::vector<T>>& rows, bool sorted) {
  std::map<std::vector<T>, int64_t> ids;  // by first occurrence
  Uniques u;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [it, is_new] = ids.try_emplace(rows[i], count(u.first.size()));
    if (is_new) {
      u.first.push_back(count(i));
      u.counts.push_back(0);
    }
    ++u.counts[at(it->second)];
    u.inverse.push_back(it->second);
  }
  if (!sorted) return u;
  std::vector<int64_t> place(u.first.size());
  Uniques ordered;
  for (const auto& [row, id] : ids) {
    place[at(id)] = count(ordered.first.size());
    ordered.first.push_back(u.first[at(id)]);
    ordered.counts.push_back(u.counts[at(id)]);
  }
  for (int64_t id : u.inverse) ordered.inverse.push_back(place[at(id)]);
  return ordered;
}

Outputs unique(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(HostTensor x, c.known(0, "the input"));
  ValueId values = c.input(0);
  int64_t axis = 0;
  if (c.has_attribute("axis")) {
    KILN_ASSIGN_OR_RETURN(axis, c.axis("axis", 0, x.type.rank()));
  } else {
    x.type.shape = {x.type.elements()};
    values = c.reshape(values, x.type.shape);
  }
  const bool sorted = c.get_int("sorted", 1) != 0;
  const Uniques u = is_float(x.type.dtype)
                        ? find_uniques(rows_along(to_doubles(x), x.type.shape, axis), sorted)
                        : find_uniques(rows_along(to_ints(x), x.type.shape, axis), sorted);
  return std::vector<ValueId>{c.gather(values, c.ints(u.first), axis), c.ints(u.first),
                              c.ints(u.inverse), c.ints(u.counts)};
}

// ---- Non-maximum suppression

struct Box {
  double top, left, bottom, right;

  double area() const { return (bottom - top) * (right - left); }
};

Box read_box(const double* numbers, bool center) {
  if (center) {  // x, y, width, height
    return {numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2,
            numbers[0] + numbers[2] / 2};
  }
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]),
          std::max(numbers[0], numbers[2]), std::max(numbers[1], numbers[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

struct Suppression {
  int64_t limit = 0;
  double overlap_threshold = 0;
  std::optional<double> score_threshold;
};

// Indices of the boxes kept, best first.
std::vector<int64_t> suppress(const std::vector<Box>& boxes, const double* scores,
                              const Suppression& s) {
  std::vector<int64_t> order(boxes.size()), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t candidate : order) {
    if (count(kept.size()) >= s.limit) break;
    if (s.score_threshold && !(scores[candidate] > *s.score_threshold)) continue;
    const bool apart = std::all_of(kept.begin(), kept.end(), [&](int64_t k) {
      return overlap(boxes[at(k)], boxes[at(candidate)]) <= s.overlap_threshold;
    });
    if (apart) kept.push_back(candidate);
  }
  return kept;
}

Result<Suppression> read_suppression(NodeContext& c) {
  Suppression s;
  if (c.has(2)) {
    KILN_ASSIGN_OR_RETURN(s.limit, c.known_int(2, "max_output_boxes_per_class"));
  }
  for (size_t i : {3, 4}) {
    if (!c.has(i)) continue;
    KILN_ASSIGN_OR_RETURN(const auto values, c.known_floats(i, "a threshold"));
    if (values.size() != 1) return c.fail("a threshold has more than one element");
    if (i == 3)
      s.overlap_threshold = values[0];
    else
      s.score_threshold = values[0];
  }
  return s;
}

Outputs non_max_suppression(NodeContext& c) {
  KILN_ASSIGN_OR_RETURN(const HostTensor boxes, c.known(0, "boxes"));
  KILN_ASSIGN_OR_RETURN(const HostTensor scores, c.known(1, "scores"));
  KILN_ASSIGN_OR_RETURN(const Suppression s, read_suppression(c));
  const Shape &b = boxes.type.shape, &p = scores.type.shape;
  if (b.size() != 3 || p.size() != 3 || b[2] != 4 || b[0] != p[0] || b[1] != p[2]) {
    return c.fail("boxes are " + to_string(boxes.type) + " and scores " + to_string(scores.type) +
                  ", expected [batch, n, 4] and [batch, classes, n]");
  }
  const bool center = c.get_int("center_point_box", 0) != 0;
  const auto corners = to_doubles(boxes), likelihoods = to_doubles(scores);
  std::vector<int64_t> selected;
  for (int64_t image = 0; image < b[0]; ++image) {
    std::vector<Box> candidates;
    for (int64_t i = 0; i < b[1]; ++i) {
      candidates.push_back(read_box(corners.data() + (image * b[1] + i) * 4, center));
    }
    for (int64_t label = 0; label < p[1]; ++label) {
      const double* row = likelihoods.data() + (image * p[1] + label) * p[2];
      for (int64_t box : suppress(candidates, row, s)) {
        selected.insert(selected.end(), {image, label, box});
      }
    }
  }
  return one(int_matrix(c, selected, {count(selected.size()) / 3, 3}));
}

constexpr Handler kHandlers[] = {
    {"", "Compress", compress},
    {"", "NonMaxSuppression", non_max_suppression},
    {"", "NonZero", non_zero},
    {"", "Unique", unique},
};

}  // namespace

std::span<const Handler> data_dependent_handlers() { return kHandlers; }

}  // namespace kiln::onnx_import
