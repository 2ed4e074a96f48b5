// What a CudnnProblem means, by plain loops in f64: the oracle of the problems that the builder
// makes. Written from cuDNN's documentation of its operations.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/tactics/cuda/cudnn_problem.h"

namespace kiln::test {

// The result of a new node.
inline ir::ValueId emit(ir::Graph& graph, ir::Op op, std::vector<ir::ValueId> inputs) {
  const auto node = graph.add_node("node", {}, std::move(op), std::move(inputs));
  EXPECT_TRUE(node.ok()) << node.error().message;
  return graph.result(*node);
}

inline size_t input_number(const ir::Graph& body, ir::ValueId value) {
  size_t number = 0;
  while (body.inputs()[number] != value) ++number;
  return number;
}

class ProblemRun {
 public:
  explicit ProblemRun(const CudnnProblem& problem) : problem_(problem) {
    for (size_t i = 0; i < problem.tensors.size(); ++i) {
      const CudnnTensor& tensor = problem.tensors[i];
      int64_t last = 0;
      for (size_t d = 0; d < tensor.dims.size(); ++d) {
        last += (tensor.dims[d] - 1) * tensor.strides[d];
      }
      data_.emplace_back(static_cast<size_t>(last) + 1, tensor.by_value.value_or(0));
    }
  }

  // The elements from the tensor's first on, as they are stored.
  void set(int64_t number, std::vector<double> stored) {
    stored.resize(data(number).size());
    data(number) = std::move(stored);
  }
  std::vector<double>& data(int64_t number) { return data_[static_cast<size_t>(number)]; }

  void run() {
    for (const CudnnOperation& operation : problem_.operations) {
      std::visit([&](const auto& o) { apply(o); }, operation);
    }
  }

 private:
  const CudnnTensor& tensor(int64_t number) const {
    return problem_.tensors[static_cast<size_t>(number)];
  }
  // Extents of 1 broadcast.
  double& at(int64_t number, const Shape& index) {
    const CudnnTensor& t = tensor(number);
    int64_t offset = 0;
    for (size_t d = 0; d < t.dims.size(); ++d) {
      if (t.dims[d] != 1) offset += index[d] * t.strides[d];
    }
    return data(number)[static_cast<size_t>(offset)];
  }
  template <class Visit>
  static void each(const Shape& dims, Visit visit) {
    Shape index(dims.size(), 0);
    while (true) {
      visit(index);
      size_t d = dims.size();
      while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

  void apply(const CudnnConvolution& o) {
    auto& y = data(o.y);
    std::fill(y.begin(), y.end(), 0.0);
    // The forward convolution's image and result; the transposed one scatters back.
    const int64_t image = o.transposed ? o.y : o.x, result = o.transposed ? o.x : o.y;
    const Shape& w = tensor(o.w).dims;
    const int64_t groups = tensor(image).dims[1] / w[1], per_group = w[0] / groups;
    each(tensor(result).dims, [&](const Shape& out) {
      Shape taps = w;
      taps[0] = 1;
      each(taps, [&](const Shape& tap) {
        Shape in = out, weight = tap;
        weight[0] = out[1];
        in[1] = out[1] / per_group * w[1] + tap[1];
        for (size_t d = 2; d < out.size(); ++d) {
          in[d] = out[d] * o.strides[d - 2] - o.pads_begin[d - 2] + tap[d] * o.dilations[d - 2];
          if (in[d] < 0 || in[d] >= tensor(image).dims[d]) return;
        }
        if (o.transposed) {
          at(image, in) += at(result, out) * at(o.w, weight);
        } else {
          at(result, out) += at(image, in) * at(o.w, weight);
        }
      });
    });
  }

  void apply(const CudnnMatmul& o) {
    const int64_t heads = tensor(o.a).dims[1] / tensor(o.b).dims[1];  // grouped ones share b
    each(tensor(o.c).dims, [&](const Shape& c) {
      double sum = 0;
      for (int64_t k = 0; k < tensor(o.a).dims[3]; ++k) {
        sum += at(o.a, {c[0], c[1], c[2], k}) * at(o.b, {c[0], c[1] / heads, k, c[3]});
      }
      at(o.c, c) = sum;
    });
  }

  void apply(const CudnnReduction& o) {
    const bool max = o.op == CUDNN_REDUCE_TENSOR_MAX;
    for (double& value : data(o.y)) value = max ? -INFINITY : 0;
    each(tensor(o.x).dims, [&](const Shape& index) {
      double& y = at(o.y, index);
      y = max ? std::max(y, at(o.x, index)) : y + at(o.x, index);
    });
  }

  void apply(const CudnnPointwise& o) {
    each(tensor(o.y).dims, [&](const Shape& index) {
      const double b = o.b ? at(*o.b, index) : 0;
      double x = at(o.x, index);
      if (o.mode == CUDNN_POINTWISE_GEN_INDEX) x = static_cast<double>(index[*o.axis]);
      if (o.mode == CUDNN_POINTWISE_BINARY_SELECT) {
        x = at(*o.condition, index) != 0 ? x : b;
      }
      at(o.y, index) = value(o, x, b);
    });
  }
  static double value(const CudnnPointwise& o, double x, double b) {
    switch (o.mode) {
      case CUDNN_POINTWISE_ADD:
        return x + b;
      case CUDNN_POINTWISE_SUB:
        return x - b;
      case CUDNN_POINTWISE_MUL:
        return x * b;
      case CUDNN_POINTWISE_DIV:
        return x / b;
      case CUDNN_POINTWISE_MAX:
        return std::max(x, b);
      case CUDNN_POINTWISE_EXP:
        return std::exp(x);
      case CUDNN_POINTWISE_LOG:
        return std::log(x);
      case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
      case CUDNN_POINTWISE_RELU_FWD:
        return std::clamp(x, o.relu_low.value_or(0), o.relu_high.value_or(INFINITY));
      case CUDNN_POINTWISE_SIGMOID_FWD:
        return 1 / (1 + std::exp(-x));
      case CUDNN_POINTWISE_TANH_FWD:
        return std::tanh(x);
      case CUDNN_POINTWISE_SWISH_FWD:
        return x / (1 + std::exp(-x));
      case CUDNN_POINTWISE_GELU_FWD:
        return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
      default:
        return x;
    }
  }

  const CudnnProblem& problem_;
  std::vector<std::vector<double>> data_;
};

}  // namespace kiln::test
