#include "builder/ir/type_rules/type_rules.h"

#include <algorithm>
#include <functional>

namespace kiln::ir {

Inferred infer(const Pointwise& op, Types in) {
  const auto count = static_cast<size_t>(arity(op.fn));
  KILN_RETURN_IF_ERROR(expect_count(in, count, count));
  const bool where = op.fn == ScalarFn::kWhere;
  if (where && in[0].dtype != DType::kBool) {
    return reject("where's condition is " + std::string(to_string(in[0].dtype)) +
                  ", expected bool");
  }
  TensorType out{in[where ? 1 : 0].dtype, in[0].shape};
  for (size_t i = 1; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(out.shape, broadcast(out.shape, in[i].shape));
    if (op.fn != ScalarFn::kPow && !(where && i == 1) && in[i].dtype != out.dtype) {
      return reject(std::string(to_string(op.fn)) + ": inputs have the types " +
                    std::string(to_string(out.dtype)) + " and " +
                    std::string(to_string(in[i].dtype)) + ", expected one type");
    }
  }
  if (yields_bool(op.fn)) out.dtype = DType::kBool;
  return one(std::move(out));
}

Inferred infer(const Cast& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  return one({op.to, in[0].shape});
}

Inferred infer(const Reduce& op, Types in) {
  KILN_RETURN_IF_ERROR(expect_count(in, 1, 1));
  if (!std::is_sorted(op.axes.begin(), op.axes.end(), std::less_equal<>())) {
    return reject("reduce: axes are not sorted and unique");
  }
  TensorType out{in[0].dtype, {}};
  for (int64_t axis : op.axes) KILN_RETURN_IF_ERROR(expect_axis(axis, in[0].rank()));
  for (int64_t i = 0; i < in[0].rank(); ++i) {
    const bool reduced = std::binary_search(op.axes.begin(), op.axes.end(), i);
    if (!reduced) out.shape.push_back(in[0].shape[static_cast<size_t>(i)]);
    if (reduced && op.keep_dims) out.shape.push_back(1);
  }
  return one(std::move(out));
}

}  // namespace kiln::ir
