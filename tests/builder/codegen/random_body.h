// Bodies of random operations on small shapes; equal seeds make equal bodies.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "tests/builder/codegen/body.h"

namespace kiln::codegen {

class RandomBody {
 public:
  explicit RandomBody(uint32_t seed) : random_(seed) {}

  Body make() {
    const auto first = body_.in(to_string(TensorType{DType::kF32, random_shape()}));
    values_.push_back(first);
    const int steps = 2 + pick(7);
    for (int i = 0; i < steps; ++i) values_.push_back(step());
    body_.out(values_.back());
    return std::move(body_);
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  Shape random_shape() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 6, 8, 12};
    Shape shape(1 + static_cast<size_t>(pick(4)));
    for (int64_t& extent : shape) extent = kExtents[pick(7)];
    return shape;
  }

  // An operand that broadcasts to `shape`: an earlier value if one fits, else a new input.
  ir::ValueId operand(const Shape& shape) {
    for (int tries = 0; tries < 3; ++tries) {
      const ir::ValueId v = values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))];
      if (body_.graph.type(v).shape == shape) return v;
    }
    Shape smaller = shape;
    for (int64_t& extent : smaller) extent = pick(3) == 0 ? 1 : extent;
    smaller.erase(smaller.begin(), smaller.begin() + pick(static_cast<int>(shape.size()) + 1));
    return body_.in(to_string(TensorType{DType::kF32, smaller}));
  }

  Shape factored(int64_t count) {
    Shape shape;
    for (const int64_t factor : {2, 3, 4, 6}) {
      if (count % factor == 0 && pick(2) == 0) {
        shape.push_back(factor);
        count /= factor;
      }
    }
    shape.insert(shape.begin() + pick(static_cast<int>(shape.size()) + 1), count);
    return shape;
  }

  ir::ValueId step() {
    const ir::ValueId x = values_.back();
    const Shape shape = body_.graph.type(x).shape;
    const size_t rank = shape.size();
    switch (pick(9)) {
      case 0:
        return body_.fn(ScalarFn::kTanh, {x});
      case 1:
      case 2: {
        const ScalarFn fns[] = {ScalarFn::kAdd, ScalarFn::kSub, ScalarFn::kMax, ScalarFn::kMul};
        return body_.fn(fns[pick(4)], {x, operand(shape)});
      }
      case 3: {
        std::vector<int64_t> perm(rank);
        for (size_t a = 0; a < rank; ++a) perm[a] = static_cast<int64_t>(a);
        std::shuffle(perm.begin(), perm.end(), random_);
        return body_.transpose(x, perm);
      }
      case 4:
        return body_.reshape(x, factored(element_count(shape)));
      case 5: {
        ir::Slice slice;
        for (const int64_t extent : shape) {
          const int64_t size = 1 + pick(static_cast<int>(extent));
          const bool backwards = pick(3) == 0;
          slice.sizes.push_back(size);
          slice.steps.push_back(backwards ? -1 : 1);
          slice.starts.push_back(backwards ? extent - 1
                                           : pick(static_cast<int>(extent - size) + 1));
        }
        return body_.op(slice, {x});
      }
      case 6: {
        ir::Pad pad;
        for (size_t a = 0; a < rank; ++a) {
          pad.before.push_back(pick(3) == 0 ? pick(3) : 0);
          pad.after.push_back(pick(3) == 0 ? pick(3) : 0);
        }
        return body_.op(pad, {x, body_.scalar(1.5f)});
      }
      case 7: {
        const auto axis = static_cast<size_t>(pick(static_cast<int>(rank)));
        Shape other = shape;
        other[axis] = 1 + pick(3);
        const auto y = body_.in(to_string(TensorType{DType::kF32, other}));
        return body_.op(ir::Concat{static_cast<int64_t>(axis)}, {x, y});
      }
      default: {
        const auto axis = static_cast<int64_t>(pick(static_cast<int>(rank)));
        const auto r = body_.reduce(pick(2) ? ReduceFn::kSum : ReduceFn::kMax, x, {axis});
        return pick(3) ? body_.fn(ScalarFn::kSub, {x, r}) : r;
      }
    }
  }

  std::mt19937 random_;
  Body body_;
  std::vector<ir::ValueId> values_;
};

}  // namespace kiln::codegen
