#include "engine/cuda/matmul/operation.h"

#include <cmath>

namespace kiln::cuda {
namespace {

using Activation = MatmulProblem::Activation;
using Compute = MatmulProblem::Compute;

Error corrupt(const std::string& why) { return {ErrorCode::kCorruptData, "matmul: " + why}; }

// Attributes of one operation, with the first error kept.
class Reader {
 public:
  explicit Reader(const Operation& operation) : operation_(operation) {}

  template <class T>
  T get(const std::string& key) {
    const AttributeValue* value = operation_.find(key);
    const T* found = value != nullptr ? std::get_if<T>(value) : nullptr;
    if (found != nullptr) return *found;
    fail(value == nullptr ? "there is no attribute '" + key + "'"
                          : "attribute '" + key + "' has another type");
    return T{};
  }

  bool flag(const std::string& key) {
    const auto value = get<int64_t>(key);
    if (value != 0 && value != 1) {
      fail("attribute '" + key + "' is " + std::to_string(value) + ", expected 0 or 1");
    }
    return value == 1;
  }

  DType dtype(const std::string& key) {
    const auto text = get<std::string>(key);
    const auto parsed = parse_dtype(text);
    if (!parsed) fail("attribute '" + key + "' is '" + text + "', expected a dtype");
    return parsed.value_or(DType::kF32);
  }

  // One of the enumerators 0..last, by its name.
  template <class Choice>
  Choice choice(const std::string& key, Choice last) {
    const auto text = get<std::string>(key);
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Choice>(i)) == text) return static_cast<Choice>(i);
    }
    fail("attribute '" + key + "' has the unknown value '" + text + "'");
    return Choice{};
  }

  MatrixView view(const std::string& prefix) {
    return {flag(prefix + "_transposed"), get<int64_t>(prefix + "_leading"),
            get<std::vector<int64_t>>(prefix + "_strides")};
  }

  double finite(const std::string& key) {
    const auto value = get<double>(key);
    if (!std::isfinite(value)) fail("attribute '" + key + "' is not finite");
    return value;
  }

  MatmulAlgorithm algorithm() {
    const auto text = get<std::string>("algorithm");
    const auto parsed = parse_matmul_algorithm(text);
    if (!parsed) fail("'" + text + "' is no algorithm");
    return parsed.value_or(MatmulAlgorithm{});
  }

  Result<> finish() const { return error_.empty() ? Ok() : corrupt(error_); }

 private:
  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  const Operation& operation_;
  std::string error_;
};

void set_view(Operation& to, const std::string& prefix, const MatrixView& view) {
  to.set(prefix + "_transposed", int64_t{view.transposed});
  to.set(prefix + "_leading", view.leading);
  to.set(prefix + "_strides", view.batch_strides);
}

}  // namespace

Operation to_operation(const MatmulCall& call) {
  const MatmulProblem& p = call.problem;
  Operation to{kMatmulOperation, {}};
  to.set("m", p.m).set("n", p.n).set("k", p.k).set("batch", p.batch);
  to.set("operands", std::string(to_string(p.operand_dtype)));
  to.set("result", std::string(to_string(p.result_dtype)));
  set_view(to, "a", p.a);
  set_view(to, "b", p.b);
  set_view(to, "d", p.d);
  to.set("compute", std::string(to_string(p.compute))).set("alpha", p.alpha);
  to.set("activation", std::string(to_string(p.activation)));
  to.set("bias", int64_t{p.bias}).set("residual", int64_t{p.residual});
  to.set("algorithm", to_string(call.algorithm));
  return to;
}

Result<MatmulCall> matmul_call_from(const Operation& operation) {
  if (operation.name != kMatmulOperation) {
    return corrupt("found operation '" + operation.name + "', expected '" + kMatmulOperation + "'");
  }
  Reader from(operation);
  MatmulCall call;
  MatmulProblem& p = call.problem;
  p.m = from.get<int64_t>("m");
  p.n = from.get<int64_t>("n");
  p.k = from.get<int64_t>("k");
  p.batch = from.get<std::vector<int64_t>>("batch");
  p.operand_dtype = from.dtype("operands");
  p.result_dtype = from.dtype("result");
  p.a = from.view("a");
  p.b = from.view("b");
  p.d = from.view("d");
  p.compute = from.choice("compute", Compute::kFastF32);
  p.alpha = from.finite("alpha");
  p.activation = from.choice("activation", Activation::kGeluTanh);
  p.bias = from.flag("bias");
  p.residual = from.flag("residual");
  call.algorithm = from.algorithm();
  KILN_RETURN_IF_ERROR(from.finish());
  return call;
}

}  // namespace kiln::cuda
