#include "builder/kernels/attention_kernel.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <sstream>
#include <string_view>

#include "builder/kernels/constants_text.h"

namespace kiln {

std::string_view attention_template();

namespace {

constexpr int64_t kMostDepth = 128;         // a warp keeps 16 rows of this in registers
constexpr int64_t kSharedBytes = 48 << 10;  // static shared memory of a block
constexpr int64_t kRowsOfWarp = 16;

Error refuse(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

// Of `unit` elements at once, from the operand called `name`.
Result<> check_place(const char* name, const AttentionPlace& place, int64_t unit) {
  if (place.element != 1) return refuse(std::string(name) + "'s elements lie apart");
  for (int64_t distance : {place.offset, place.batch, place.head, place.row}) {
    if (distance % unit != 0) {
      return refuse(std::string(name) + " is read " + std::to_string(unit * 2) +
                    " bytes at a time, which its strides do not allow");
    }
  }
  return Ok();
}

int64_t shared_bytes(const AttentionShape& shape, int64_t tile) {
  return 2 * tile * (shape.depth * 2 + 16 + shape.value_depth * 2 + 16);
}

int64_t mask_bytes(const AttentionShape& shape) {
  return shape.mask == DType::kBool ? 0 : shape.mask == DType::kF32 ? 4 : 2;
}

void write_place(std::ostringstream& text, const char* name, const AttentionPlace& place) {
  const auto one = [&](const char* part, int64_t value) {
    text << "constexpr long long k" << name << part << " = " << value << ";\n";
  };
  one("Offset", place.offset);
  one("Batch", place.batch);
  one("Head", place.head);
  one("Row", place.row);
}

}  // namespace

Result<> check_attention_shape(const AttentionShape& shape) {
  if (shape.dtype != DType::kF16 && shape.dtype != DType::kBF16) {
    return refuse("tensor cores take f16 and bf16 here, not " +
                  std::string(to_string(shape.dtype)));
  }
  for (int64_t depth : {shape.depth, shape.value_depth}) {
    if (depth % 16 != 0 || depth < 16 || depth > kMostDepth) {
      return refuse("a head has " + std::to_string(depth) + " elements, multiples of 16 up to " +
                    std::to_string(kMostDepth) + " expected");
    }
  }
  if (shape.heads % shape.key_heads != 0) return refuse("heads of k do not divide those of q");
  if (shape.mask != DType::kBool && shape.mask != DType::kF32 && shape.mask != shape.dtype) {
    return refuse("the mask is " + std::string(to_string(shape.mask)));
  }
  if (std::min({shape.batch, shape.rows, shape.columns}) < 1) return refuse("there are no tokens");
  constexpr int64_t kMost = 1 << 28;  // bytes of a row of the mask are counted in 32 bits
  if (shape.rows > kMost || shape.columns > kMost) return refuse("there are over 2^28 tokens");
  KILN_RETURN_IF_ERROR(check_place("q", shape.q, 2));
  KILN_RETURN_IF_ERROR(check_place("k", shape.k, 8));
  KILN_RETURN_IF_ERROR(check_place("v", shape.v, 8));
  return check_place("the result", shape.y, 2);
}

std::vector<AttentionTiling> attention_tilings(const AttentionShape& shape) {
  std::vector<AttentionTiling> tilings;
  std::vector<int64_t> counts = {4, 2, 8, 1};
  // As few blocks as with 8 warps, none of them idle.
  const int64_t pieces = (shape.rows + kRowsOfWarp - 1) / kRowsOfWarp;
  const int64_t blocks = (pieces + 7) / 8, fitting = (pieces + blocks - 1) / blocks;
  if (fitting > 4 && fitting < 8) counts.push_back(fitting);
  for (int64_t warps : counts) {
    // More warps than there are rows for would idle.
    if (warps > 1 && shape.rows <= warps / 2 * kRowsOfWarp) continue;
    for (int64_t tile : {64, 32}) {
      if (shared_bytes(shape, tile) > kSharedBytes) continue;
      if (tile > 32 && shape.columns <= 32) continue;
      tilings.push_back({warps, tile});
    }
  }
  return tilings;
}

std::string attention_text(const AttentionShape& shape, const AttentionTiling& tiling) {
  // Without a mask products are compared as they are, and scaled along with the power.
  const auto whole = static_cast<float>(shape.scale * std::numbers::log2e);
  const bool later = mask_bytes(shape) == 0 && whole >= std::numeric_limits<float>::min();
  const float scale = later ? 1 : static_cast<float>(shape.scale);
  const float power_scale = later ? whole : static_cast<float>(std::numbers::log2e);
  std::ostringstream text;
  write_number(text, "kWarps", tiling.warps);
  write_number(text, "kTile", tiling.tile);
  write_number(text, "kHeads", shape.heads);
  write_number(text, "kKeyHeads", shape.key_heads);
  write_number(text, "kRows", shape.rows);
  write_number(text, "kColumns", shape.columns);
  write_number(text, "kDepth", shape.depth);
  write_number(text, "kValueDepth", shape.value_depth);
  write_number(text, "kMaskBytes", mask_bytes(shape));
  write_number(text, "kMaskPeriod", shape.mask_period > 0 ? shape.mask_period : shape.batch);
  write_flag(text, "kF16", shape.dtype == DType::kF16);
  write_flag(text, "kCausal", shape.causal);
  write_flag(text, "kMaskedRowZero", shape.masked_row_zero);
  text << "constexpr float kScale = " << std::hexfloat << scale << "f;\n"
       << "constexpr float kPowerScale = " << power_scale << "f;\n";
  write_place(text, "Q", shape.q);
  write_place(text, "K", shape.k);
  write_place(text, "V", shape.v);
  write_place(text, "Y", shape.y);
  write_place(text, "Mask", shape.mask_place);
  text << "constexpr long long kMaskColumn = " << shape.mask_place.element << ";\n"
       << attention_template();
  return text.str();
}

int64_t attention_blocks(const AttentionShape& shape, const AttentionTiling& tiling) {
  const int64_t rows = tiling.warps * kRowsOfWarp;
  return (shape.rows + rows - 1) / rows * shape.heads * shape.batch;
}

}  // namespace kiln
