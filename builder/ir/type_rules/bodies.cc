#include "builder/ir/graph.h"
#include "builder/ir/type_rules/type_rules.h"

namespace kiln::ir {
namespace {

std::vector<TensorType> output_types(const Graph& body) {
  std::vector<TensorType> types;
  for (ValueId id : body.outputs()) types.push_back(body.type(id));
  return types;
}

Result<> expect_arguments(const Graph& body, Types in, const char* what) {
  if (body.inputs().size() != in.size()) {
    return reject(std::string(what) + " takes " + std::to_string(body.inputs().size()) +
                  " inputs, found " + std::to_string(in.size()));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (body.type(body.inputs()[i]) != in[i]) {
      return reject(std::string(what) + ": input " + std::to_string(i) + " is " + to_string(in[i]) +
                    ", the body expects " + to_string(body.type(body.inputs()[i])));
    }
  }
  return Ok();
}

}  // namespace

Inferred infer(const If& op, Types in) {
  if (in.empty() || in[0].dtype != DType::kBool || in[0].elements() != 1) {
    return reject("if: the condition must be one bool");
  }
  KILN_RETURN_IF_ERROR(expect_arguments(*op.then_body, in.subspan(1), "if: then branch"));
  KILN_RETURN_IF_ERROR(expect_arguments(*op.else_body, in.subspan(1), "if: else branch"));
  const auto types = output_types(*op.then_body), other = output_types(*op.else_body);
  if (types.size() != other.size()) {
    return reject("if: the then branch has " + std::to_string(types.size()) +
                  " outputs, the else branch " + std::to_string(other.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != other[i]) {
      return reject("if: output " + std::to_string(i) + " is " + to_string(types[i]) +
                    " in the then branch and " + to_string(other[i]) + " in the else branch");
    }
  }
  return types;
}

Inferred infer(const Loop& op, Types in) {
  if (in.size() < 2 || op.carried < 0 || in.size() < static_cast<size_t>(op.carried) + 2) {
    return reject("loop: found " + std::to_string(in.size()) +
                  " inputs, expected trip count, condition and the carried values");
  }
  KILN_RETURN_IF_ERROR(expect_arguments(*op.body, in, "loop: body"));
  const size_t carried = static_cast<size_t>(op.carried);
  auto types = output_types(*op.body);
  if (types.size() < carried + 1 || types[0].dtype != DType::kBool) {
    return reject("loop: the body must yield a bool condition and every carried value");
  }
  types.erase(types.begin());
  for (size_t i = 0; i < types.size(); ++i) {
    if (i < carried && types[i] != in[i + 2]) {
      return reject("loop: carried value " + std::to_string(i) + " enters as " +
                    to_string(in[i + 2]) + " and leaves as " + to_string(types[i]));
    }
    if (i < carried) continue;
    if (op.trip_count < 0) return reject("loop: scanned outputs need a constant trip count");
    types[i].shape.insert(types[i].shape.begin(), op.trip_count);
    if (!checked_element_count(types[i].shape)) return reject("the result is too large");
  }
  return types;
}

Inferred infer(const Region& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_arguments(*op.body, in, "region"));
  return output_types(*op.body);
}

}  // namespace kiln::ir
