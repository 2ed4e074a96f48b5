#include "engine/host/onednn/post_ops.h"

#include <charconv>

namespace kiln::host {
namespace {

struct Row {
  std::string_view name;
  dnnl::algorithm algorithm;
  size_t parameters;
  float alpha;
};

using enum dnnl::algorithm;
constexpr Row kRows[] = {
    {"relu", eltwise_relu, 0, 0},
    {"tanh", eltwise_tanh, 0, 0},
    {"sigmoid", eltwise_logistic, 0, 0},
    {"swish", eltwise_swish, 0, 1},
    {"gelu_erf", eltwise_gelu_erf, 0, 0},
    {"gelu_tanh", eltwise_gelu_tanh, 0, 0},
    {"leaky_relu", eltwise_relu, 1, 0},
    {"elu", eltwise_elu, 1, 0},
    {"clip", eltwise_clip, 2, 0},
    {"linear", eltwise_linear, 2, 0},
    {"hard_swish", eltwise_hardswish, 0, 0},
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(':')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    parts.push_back(text.substr(0, end));
  }
  parts.push_back(text);
  return parts;
}

Result<PostOp> parse(const Operation& o, const std::string& text) {
  if (text == "bias") return PostOp{PostOp::Kind::kBias};
  if (text == "add") return PostOp{PostOp::Kind::kAdd};
  const auto parts = split(text);
  for (const Row& row : kRows) {
    if (row.name != parts[0] || row.parameters + 1 != parts.size()) continue;
    float numbers[2] = {row.alpha, 0};
    for (size_t i = 1; i < parts.size(); ++i) {
      const char* end = parts[i].data() + parts[i].size();
      const auto [at, error] = std::from_chars(parts[i].data(), end, numbers[i - 1]);
      if (error != std::errc() || at != end) {
        return reject(o, "post-op '" + text + "' has a parameter that is no number");
      }
    }
    return PostOp{PostOp::Kind::kEltwise, row.algorithm, numbers[0], numbers[1]};
  }
  return reject(o, "there is no post-op '" + text + "'");
}

}  // namespace

Result<std::vector<PostOp>> post_ops(const Operation& o) {
  constexpr size_t kMost = 16;
  KILN_ASSIGN_OR_RETURN(const auto texts, strings_attribute(o, "post_ops", -1));
  if (texts.size() > kMost) return reject(o, "there are more than 16 post-ops");
  std::vector<PostOp> ops;
  for (const std::string& text : texts) {
    KILN_ASSIGN_OR_RETURN(ops.emplace_back(), parse(o, text));
    if (ops.back().kind == PostOp::Kind::kBias && ops.size() > 1) {
      return reject(o, "'bias' must be the first of the post-ops");
    }
  }
  return ops;
}

Result<> check_post_inputs(const Operation& o, const std::vector<PostOp>& ops, InputTypes inputs,
                           const TensorType& result, int64_t channels) {
  size_t next = 2;
  for (const PostOp& op : ops) next += op.kind != PostOp::Kind::kEltwise;
  KILN_RETURN_IF_ERROR(expect_inputs(o, inputs, next));
  next = 2;
  for (const PostOp& op : ops) {
    if (op.kind == PostOp::Kind::kEltwise) continue;
    KILN_RETURN_IF_ERROR(expect_dtype(o, inputs, next, result.dtype));
    KILN_RETURN_IF_ERROR(expect_shape(
        o, inputs, next, op.kind == PostOp::Kind::kBias ? Shape{channels} : result.shape));
    ++next;
  }
  return Ok();
}

}  // namespace kiln::host
