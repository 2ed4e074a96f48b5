// Whatever an engine file says, prepare yields a kernel or an error, and a kernel stays inside of
// its buffers: every operation with mutated attributes and types, run on buffers of exactly the
// declared sizes. The sanitizers do the judging.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/engine/host/run_operation.h"

namespace kiln::testing {
namespace {

struct Seed {
  const char* operation;
  std::vector<const char*> inputs;
};

const std::vector<Seed>& seeds() {
  static const std::vector<Seed> kSeeds = {
      {"add", {"f32[2x3]", "f32[3]"}},
      {"where", {"bool[2x1]", "i4[3]", "i4[2x3]"}},
      {"pow", {"f16[4]", "i64[4]"}},
      {"shift_left", {"u8[4]", "u8[1]"}},
      {"cast{saturate=1, to=\"i4\"}", {"f32[5]"}},
      {"bit_cast{to=\"i32\"}", {"f32[5]"}},
      {"reduce{axes=[1], fn=\"sum\", keep_dims=1}", {"f32[2x3x4]"}},
      {"transpose{perm=[2, 0, 1]}", {"f32[2x3x4]"}},
      {"reshape{shape=[3, 8]}", {"f32[2x3x4]"}},
      {"broadcast{shape=[2, 3, 4]}", {"i4[3x1]"}},
      {"slice{sizes=[2, 2], starts=[0, 3], steps=[1, -2]}", {"f32[2x4]"}},
      {"pad{after=[0, 1], before=[1, 0]}", {"f32[2x3]", "f32[]"}},
      {"concat{axis=1}", {"f32[2x3]", "f32[2x1]"}},
      {"gather{axis=1}", {"f32[2x3]", "i64[4]"}},
      {"gather_elements{axis=1}", {"f32[2x3]", "i64[2x2]"}},
      {"gather_nd{batch_dims=1}", {"f32[2x3x4]", "i64[2x1]"}},
      {"scatter_elements{axis=1, reduction=\"add\"}", {"f32[2x3]", "i64[2x2]", "f32[2x2]"}},
      {"scatter_nd{reduction=\"max\"}", {"f32[4x2]", "i64[3x1]", "f32[3x2]"}},
      {"matmul{transpose_a=0, transpose_b=1}", {"f32[2x3x4]", "f32[5x4]"}},
      {"onednn.matmul{post_ops=[\"bias\", \"relu\"], transpose_a=0, transpose_b=1}",
       {"f32[2x3x4]", "f32[5x4]", "f32[5]"}},
      {"conv{dilations=[1, 2], groups=2, pads_begin=[1, 0], pads_end=[0, 2], strides=[2, 1]}",
       {"f32[1x4x5x6]", "f32[6x2x3x2]", "f32[6]"}},
      {"onednn.conv{blocked=1, dilations=[1, 1], groups=1, pads_begin=[1, 0], pads_end=[0, 2], "
       "post_ops=[\"bias\"], strides=[2, 1]}",
       {"f32[1x4x5x6]", "f32[6x4x3x2]", "f32[6]"}},
      {"conv_transpose{dilations=[1, 1], groups=2, output_padding=[1, 0], pads_begin=[1, 0], "
       "pads_end=[0, 1], strides=[2, 1]}",
       {"f32[1x4x3x4]", "f32[4x3x3x2]", "f32[6]"}},
      {"attention{causal=1, masked_row_zero=1, scale=0.5, softcap=2.0}",
       {"f32[1x4x3x2]", "f32[1x2x5x2]", "f32[1x2x5x3]", "bool[3x5]"}},
      {"max_pool{ceil_mode=1, dilations=[2, 1], kernel_shape=[2, 3], pads=[1, 0, 0, 1], "
       "storage_order=1, strides=[2, 1], with_indices=1}",
       {"f32[1x2x5x6]"}},
      {"average_pool{ceil_mode=1, count_include_pad=1, dilations=[1, 1], kernel_shape=[2, 3], "
       "pads=[1, 0, 0, 1], strides=[2, 1]}",
       {"f32[1x2x5x6]"}},
      {"lp_pool{ceil_mode=0, dilations=[1], kernel_shape=[2], p=2, pads=[1, 0], strides=[2]}",
       {"f32[1x2x5]"}},
      {"max_unpool{indexed_shape=[1, 1, 4], shape=[1, 1, 5]}", {"f32[1x1x2]", "i64[1x1x2]"}},
      {"col2im{block_shape=[2, 2], dilations=[1, 1], image_shape=[3, 4], pads=[0, 0, 0, 0], "
       "strides=[1, 2]}",
       {"f32[1x8x4]"}},
      {"resize{antialias=1, coordinate_transformation_mode=\"tf_crop_and_resize\", "
       "cubic_coeff_a=-0.75, exclude_outside=1, extrapolation_value=1.0, mode=\"cubic\", "
       "nearest_mode=\"floor\", roi=[0.0, 0.1, 1.0, 0.9], scales=[2.0, 0.5], sizes=[4, 3]}",
       {"f32[2x6]"}},
      {"top_k{axis=1, k=2, largest=1, sorted=1}", {"f32[2x5]"}},
      {"arg_max{axis=1, keepdims=1, select_last_index=1}", {"f32[2x5]"}},
      {"cum_sum{axis=1, exclusive=1, reverse=1}", {"i32[2x5]"}},
      {"reverse_sequence{batch_axis=0, time_axis=1}", {"f32[2x5x2]", "i64[2]"}},
      {"lstm{activation_alpha=[0.0, 0.0, 0.0], activation_beta=[0.0, 0.0, 0.0], "
       "activations=[\"Sigmoid\", \"Tanh\", \"Tanh\"], clip=inf, direction=\"reverse\", "
       "input_forget=0}",
       {"f32[3x2x4]", "f32[1x20x4]", "f32[1x20x5]", "f32[1x40]", "i32[2]", "f32[1x2x5]",
        "f32[1x2x5]", "f32[1x15]"}},
      {"gru{activation_alpha=[0.0, 0.0], activation_beta=[0.0, 0.0], activations=[\"Sigmoid\", "
       "\"Tanh\"], clip=1.0, direction=\"forward\", linear_before_reset=0}",
       {"f32[3x2x4]", "f32[1x15x4]", "f32[1x15x5]", "f32[1x30]", "i32[2]", "f32[1x2x5]"}},
      {"grid_sample{align_corners=0, mode=\"cubic\", padding_mode=\"reflection\"}",
       {"f32[1x2x3x4]", "f32[1x2x3x2]"}},
      {"roi_align{coordinate_transformation_mode=\"half_pixel\", mode=\"avg\", output_height=2, "
       "output_width=2, sampling_ratio=0, spatial_scale=1.0}",
       {"f32[1x2x3x4]", "f32[2x4]", "i64[2]"}},
      {"deform_conv{dilations=[1, 1], groups=1, offset_group=1, pads_begin=[0, 0], "
       "pads_end=[0, 0], strides=[1, 1]}",
       {"f32[1x2x4x4]", "f32[3x2x2x2]", "f32[1x8x3x3]", "f32[3]", "f32[1x4x3x3]"}},
      {"dft{axis=1, inverse=0, length=5, onesided=1}", {"f32[2x4x1]"}},
      {"det", {"f32[2x3x3]"}},
  };
  return kSeeds;
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return random_() % n; }

  int64_t number() {
    constexpr int64_t kNumbers[] = {0,  1,         -1,        2,         3,         -2,
                                    64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 30};
    return kNumbers[below(std::size(kNumbers))];
  }

  void mutate(AttributeValue& value) {
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      if (list->empty() || below(4) == 0)
        list->push_back(number());
      else if (below(4) == 0)
        list->pop_back();
      else
        (*list)[below(list->size())] = number();
    } else if (std::holds_alternative<int64_t>(value)) {
      value = number();
    } else if (std::holds_alternative<double>(value)) {
      constexpr double kNumbers[] = {0, -1, 1e300, -1e-300, INFINITY, NAN};
      value = kNumbers[below(std::size(kNumbers))];
    } else if (auto* reals = std::get_if<std::vector<double>>(&value)) {
      if (!reals->empty()) (*reals)[below(reals->size())] = below(2) == 0 ? 1e300 : NAN;
    } else if (auto* text = std::get_if<std::string>(&value)) {
      *text = below(2) == 0 ? "" : "f16";
    } else {
      value = std::vector<std::string>{"add"};
    }
  }

  void mutate(TensorType& type) {
    if (below(3) == 0) type.dtype = static_cast<DType>(below(kDTypeCount));
    const uint64_t choice = below(3);
    if (choice == 0 && !type.shape.empty()) {
      constexpr int64_t kExtents[] = {0, 1, 2, 3, 7, int64_t{1} << 40};
      type.shape[below(type.shape.size())] = kExtents[below(std::size(kExtents))];
    } else if (choice == 1) {
      type.shape.insert(type.shape.begin(), static_cast<int64_t>(1 + below(2)));
    } else if (!type.shape.empty()) {
      type.shape.pop_back();
    }
  }

  void fill(std::vector<std::byte>& bytes) {
    // Mostly small, so that indices are sometimes valid.
    for (std::byte& b : bytes) b = static_cast<std::byte>(below(8) == 0 ? below(256) : 0);
  }

 private:
  std::mt19937 random_;
};

constexpr int64_t kMostBytes = 1 << 20;

bool is_small(const std::vector<TensorType>& types) {
  for (const TensorType& type : types) {
    const auto count = checked_element_count(type.shape);
    if (!count || *count > kMostBytes / 8) return false;
  }
  return true;
}

// Returns whether a kernel ran.
bool attempt(const Operation& op, const std::vector<TensorType>& types, Mutator& mutator) {
  std::vector<HostInput> in;
  for (const TensorType& type : types) in.push_back({type, nullptr});
  const auto outputs = infer_host_operation(op, types);
  const auto kernel =
      host_kernels().prepare(op, in, outputs.ok() ? *outputs : std::vector<TensorType>{types[0]});
  if (!kernel.ok() || !outputs.ok() || !is_small(types) || !is_small(*outputs)) return false;
  if ((*kernel)->workspace_bytes() > 64 * kMostBytes) return false;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> results;
  for (const TensorType& type : types) {
    mutator.fill(buffers.emplace_back(type.bytes()));
    inputs.push_back(buffers.back().data());
  }
  for (const TensorType& type : *outputs) {
    results.push_back(buffers.emplace_back(type.bytes()).data());
  }
  std::vector<std::byte> workspace((*kernel)->workspace_bytes() + 64);
  void* base = workspace.data();
  size_t space = workspace.size();
  std::align(64, (*kernel)->workspace_bytes(), base, space);
  (void)(*kernel)->run(inputs, results, base);
  return true;
}

TEST(HostileOperations, NeverLeaveTheirBuffers) {
  Mutator mutator(20);
  for (const Seed& seed : seeds()) {
    const Operation original = operation(seed.operation);
    std::vector<TensorType> types;
    for (const char* text : seed.inputs) types.push_back(*parse_tensor_type(text));
    ASSERT_TRUE(attempt(original, types, mutator)) << seed.operation;
    for (int round = 0; round < 300; ++round) {
      Operation op = original;
      auto mutated = types;
      for (uint64_t changes = 1 + mutator.below(2); changes > 0; --changes) {
        if (!op.attributes.empty() && mutator.below(2) == 0) {
          mutator.mutate(op.attributes[mutator.below(op.attributes.size())].second);
        } else {
          mutator.mutate(mutated[mutator.below(mutated.size())]);
        }
      }
      if (mutator.below(10) == 0 && !op.attributes.empty()) op.attributes.pop_back();
      if (mutator.below(10) == 0) mutated.pop_back();
      if (mutated.empty()) continue;
      attempt(op, mutated, mutator);
    }
  }
}

}  // namespace
}  // namespace kiln::testing
