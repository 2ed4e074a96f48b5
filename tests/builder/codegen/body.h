// A terse way to write region bodies in tests.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "builder/ir/graph.h"

namespace kiln::codegen {

struct Body {
  ir::Graph graph;

  // in("f32[2x3]")
  ir::ValueId in(std::string_view type) {
    return graph.add_input("x" + std::to_string(graph.inputs().size()),
                           parse_tensor_type(type).value());
  }
  template <class T>
  ir::ValueId scalar(DType dtype, T value) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return graph.add_constant("c", {dtype, {}}, SharedBytes::take(std::move(bytes)));
  }
  ir::ValueId scalar(float value) { return scalar(DType::kF32, value); }
  ir::ValueId op(ir::Op what, std::vector<ir::ValueId> inputs) {
    auto node = graph.add_node("n" + std::to_string(graph.node_count()), {}, std::move(what),
                               std::move(inputs));
    EXPECT_TRUE(node.ok()) << (node.ok() ? "" : node.error().message);
    return graph.result(*node);
  }
  ir::ValueId fn(ScalarFn what, std::vector<ir::ValueId> inputs) {
    return op(ir::Pointwise{what}, std::move(inputs));
  }
  ir::ValueId reduce(ReduceFn what, ir::ValueId x, std::vector<int64_t> axes, bool keep = true) {
    return op(ir::Reduce{what, std::move(axes), keep}, {x});
  }
  ir::ValueId reshape(ir::ValueId x, Shape shape) { return op(ir::Reshape{std::move(shape)}, {x}); }
  ir::ValueId transpose(ir::ValueId x, std::vector<int64_t> perm) {
    return op(ir::Transpose{std::move(perm)}, {x});
  }
  // Half 0 or 1 of the last axis.
  ir::ValueId half(ir::ValueId x, int64_t which) {
    ir::Slice slice;
    slice.sizes = graph.type(x).shape;
    slice.starts.assign(slice.sizes.size(), 0);
    slice.steps.assign(slice.sizes.size(), 1);
    slice.sizes.back() /= 2;
    slice.starts.back() = which * slice.sizes.back();
    return op(std::move(slice), {x});
  }
  // silu(gate) * up of the halves of a product's rows.
  ir::ValueId swiglu(ir::ValueId product) {
    const auto gate = half(product, 0);
    const auto silu = fn(ScalarFn::kMul, {gate, fn(ScalarFn::kSigmoid, {gate})});
    return fn(ScalarFn::kMul, {silu, half(product, 1)});
  }
  Body& out(ir::ValueId value) {
    graph.mark_output(value);
    return *this;
  }
  ir::ValueId softmax(ir::ValueId x, int64_t axis) {
    const auto shifted = fn(ScalarFn::kSub, {x, reduce(ReduceFn::kMax, x, {axis})});
    const auto e = fn(ScalarFn::kExp, {shifted});
    return fn(ScalarFn::kDiv, {e, reduce(ReduceFn::kSum, e, {axis})});
  }
};

}  // namespace kiln::codegen
