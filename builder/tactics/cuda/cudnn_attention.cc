#include "builder/tactics/cuda/cudnn_attention.h"

#include <limits>

#include "builder/tactics/cuda/attention_operands.h"

namespace kiln {
namespace {

// Below every score that counts: the exponential of the distance is 0.
constexpr float kLeastScore = -30000;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

Result<> check_attention(const ir::Graph& body, const AttentionOperands& operands) {
  const ir::Node& node = body.node(operands.anchor);
  const ir::Attention& op = *operands.op;
  const TensorType& q = body.type(node.inputs[0]);
  if (q.dtype != DType::kF16 && q.dtype != DType::kBF16) {
    return refuse("cuDNN's attention is for f16 and bf16");
  }
  if (op.softcap != 0) return refuse("cuDNN's attention has no soft cap");
  if (!operands.mask) return Ok();
  // Anything else is refused or, as bool, crashes the library.
  if (body.type(operands.mask->source).dtype != q.dtype)
    return refuse("the mask is of another type than q");
  return Ok();
}

// Writes the pattern that cuDNN's fused attention engines look for.
class Writer {
 public:
  Writer(const ir::Graph& body, const ir::Node& node) : body_(body), node_(node) {
    const Shape& q = body.type(node.inputs[0]).shape;
    scores_ = {q[0], q[1], q[2], body.type(node.inputs[1]).shape[2]};
    rows_ = {q[0], q[1], q[2], 1};
  }

  Result<AttentionProblem> write(const AttentionOperands& operands) {
    const ir::Attention& op = *operands.op;
    KILN_ASSIGN_OR_RETURN(const int64_t q, operand(operands.q));
    StridedView keys = operands.k;  // cuDNN's pattern has k transposed
    std::swap(keys.dims[2], keys.dims[3]);
    std::swap(keys.strides[2], keys.strides[3]);
    KILN_ASSIGN_OR_RETURN(const int64_t k, operand(keys));
    int64_t scores = matmul(q, k, inside(DType::kF32, scores_));
    scores = pointwise(CUDNN_POINTWISE_MUL, scores, number(static_cast<float>(op.scale)), scores_);
    if (operands.mask) {
      KILN_ASSIGN_OR_RETURN(const int64_t mask, operand(*operands.mask));
      scores = pointwise(CUDNN_POINTWISE_ADD, scores, mask, scores_);
      // A row of nothing but -inf has equal weights.
      scores = pointwise(CUDNN_POINTWISE_MAX, scores, number(kLeastScore), scores_);
    }
    if (op.causal) scores = mask_above_diagonal(scores);
    const int64_t weights = softmax(scores);
    KILN_ASSIGN_OR_RETURN(const int64_t v, operand(operands.v));
    made_.output =
        problem().add({body_.type(node_.outputs[0]).dtype, operands.y.dims, operands.y.strides});
    problem().operations.emplace_back(CudnnMatmul{weights, v, made_.output});
    return std::move(made_);
  }

 private:
  CudnnProblem& problem() { return made_.problem; }

  Result<int64_t> operand(const StridedView& view) {
    const DType dtype = body_.type(view.source).dtype;
    if (view.offset * bits_of(dtype) % 128 != 0) return refuse("an operand starts off 16 bytes");
    const int64_t tensor = problem().add({dtype, view.dims, view.strides});
    made_.inputs.push_back({tensor, view.source, view.offset});
    return tensor;
  }

  int64_t inside(DType dtype, const Shape& dims) {
    return problem().add({dtype, dims, row_major_strides(dims), true});
  }
  int64_t number(float value) {
    return problem().add({DType::kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, false, value});
  }
  int64_t matmul(int64_t a, int64_t b, int64_t c) {
    problem().operations.emplace_back(CudnnMatmul{a, b, c});
    return c;
  }
  int64_t pointwise(cudnnPointwiseMode_t mode, int64_t x, std::optional<int64_t> b,
                    const Shape& dims, DType dtype = DType::kF32) {
    CudnnPointwise one;
    one.mode = mode;
    one.x = x;
    one.b = b;
    one.y = inside(dtype, dims);
    problem().operations.emplace_back(one);
    return one.y;
  }
  int64_t reduce(cudnnReduceTensorOp_t op, int64_t x) {
    const int64_t y = inside(DType::kF32, rows_);
    problem().operations.emplace_back(CudnnReduction{op, x, y});
    return y;
  }

  int64_t index(int64_t scores, int64_t axis) {
    CudnnPointwise one;
    one.mode = CUDNN_POINTWISE_GEN_INDEX;
    one.x = scores;
    one.y = inside(DType::kI32, scores_);
    one.axis = axis;
    problem().operations.emplace_back(one);
    return one.y;
  }

  int64_t mask_above_diagonal(int64_t scores) {
    const int64_t row = index(scores, 2), column = index(scores, 3);
    CudnnPointwise below;
    below.mode = CUDNN_POINTWISE_CMP_GE;
    below.x = row;
    below.b = column;
    below.y = inside(DType::kBool, scores_);
    below.arithmetic = DType::kBool;
    problem().operations.emplace_back(below);
    CudnnPointwise select;
    select.mode = CUDNN_POINTWISE_BINARY_SELECT;
    select.x = scores;
    select.b = number(-std::numeric_limits<float>::infinity());
    select.condition = below.y;
    select.y = inside(DType::kF32, scores_);
    problem().operations.emplace_back(select);
    return select.y;
  }

  // The weights in the operands' type, as the second product reads them.
  int64_t softmax(int64_t scores) {
    const int64_t most = reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
    const int64_t shifted = pointwise(CUDNN_POINTWISE_SUB, scores, most, scores_);
    const int64_t powers = pointwise(CUDNN_POINTWISE_EXP, shifted, std::nullopt, scores_);
    const int64_t sums = reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
    // Nothing reads this, the log of the sum of powers, but the engines' pattern has it.
    const int64_t log = pointwise(CUDNN_POINTWISE_LOG, sums, std::nullopt, rows_);
    pointwise(CUDNN_POINTWISE_ADD, most, log, rows_);
    return pointwise(CUDNN_POINTWISE_DIV, powers, sums, scores_, body_.type(node_.inputs[0]).dtype);
  }

  const ir::Graph& body_;
  const ir::Node& node_;
  Shape scores_, rows_;
  AttentionProblem made_;
};

}  // namespace

Result<AttentionProblem> attention_problem(const ir::Graph& body) {
  KILN_ASSIGN_OR_RETURN(const AttentionOperands operands, attention_operands(body));
  const ir::Node& node = body.node(operands.anchor);
  KILN_RETURN_IF_ERROR(check_attention(body, operands));
  if (operands.mask && operands.mask->dims[0] != 1 &&
      operands.mask->dims[0] != operands.q.dims[0]) {
    return refuse("the mask repeats along the batch");
  }
  KILN_ASSIGN_OR_RETURN(AttentionProblem made, Writer(body, node).write(operands));
  if (operands.mask && operands.op->masked_row_zero) {
    KILN_ASSIGN_OR_RETURN(made.masked_rows, masked_rows(body, operands));
  }
  return made;
}

}  // namespace kiln
