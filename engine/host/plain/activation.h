// The activation functions of the recurrent operations.
#pragma once
#include <cmath>
#include <optional>
#include <string_view>

namespace kiln::host {

struct Activation {
  enum class Kind : uint8_t {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;
};

// The kind by its ONNX name, in any case.
std::optional<Activation::Kind> parse_activation(std::string_view name);

template <class T>
T activate(const Activation& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  switch (f.kind) {
    case Activation::Kind::kRelu:
      return x > 0 || std::isnan(x) ? x : T{0};
    case Activation::Kind::kTanh:
      return std::tanh(x);
    case Activation::Kind::kSigmoid:
      return T{1} / (T{1} + std::exp(-x));
    case Activation::Kind::kAffine:
      return alpha * x + beta;
    case Activation::Kind::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Activation::Kind::kThresholdedRelu:
      return x > alpha ? x : T{0};
    case Activation::Kind::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case Activation::Kind::kHardSigmoid: {
      const T y = alpha * x + beta;
      return y < 0 ? T{0} : y > 1 ? T{1} : y;
    }
    case Activation::Kind::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Activation::Kind::kSoftsign:
      return x / (T{1} + std::abs(x));
    case Activation::Kind::kSoftplus:
      return std::log1p(std::exp(-std::abs(x))) + (x > 0 ? x : 0);
  }
  return x;
}

}  // namespace kiln::host
