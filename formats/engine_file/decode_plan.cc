#include <algorithm>
#include <cstring>
#include <string>

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/encode_plan.h"
#include "formats/engine_file/plan_fields.h"

namespace kiln::engine_file {
namespace {

constexpr auto kLastTarget = static_cast<uint8_t>(plan::Target::kCuda);

class PlanDecoder {
 public:
  PlanDecoder(size_t section_bytes, const SharedBytes& blobs)
      : fields_(section_bytes), blobs_(blobs) {}

  Result<plan::Plan> decode(const Plan& from) {
    plan::Plan plan;
    KILN_RETURN_IF_ERROR(fields_.decode_types(from));
    KILN_RETURN_IF_ERROR(decode_origin(*from.origin(), plan.origin));
    KILN_RETURN_IF_ERROR(decode_io(from.inputs(), plan.inputs));
    KILN_RETURN_IF_ERROR(decode_io(from.outputs(), plan.outputs));
    plan.batch_padding = from.batch_padding();
    KILN_RETURN_IF_ERROR(
        fields_.decode_text(from.batch_padding_reason(), plan.batch_padding_reason));
    KILN_RETURN_IF_ERROR(fields_.spend(from.points()));
    for (size_t i = 0; i < count(from.points()); ++i) {
      auto decoded = decode_point(*from.points()->Get(uint32_t(i)), plan.points.emplace_back());
      if (!decoded) return std::move(decoded).error().context("point " + std::to_string(i));
    }
    KILN_RETURN_IF_ERROR(decode_constants(from, plan));
    KILN_RETURN_IF_ERROR(decode_blobs(from, plan));
    KILN_RETURN_IF_ERROR(decode_plugins(from, plan));
    return plan;
  }

 private:
  Result<> decode_origin(const Origin& from, plan::Origin& to) {
    if (from.target() > kLastTarget) {
      return corrupt("target is " + std::to_string(from.target()) +
                     ", expected 0 (host) or 1 (cuda)");
    }
    to.target = static_cast<plan::Target>(from.target());
    to.compute_capability = from.compute_capability();
    to.driver_version = from.driver_version();
    to.cuda_version = from.cuda_version();
    to.cublaslt_version = from.cublaslt_version();
    to.cudnn_version = from.cudnn_version();
    to.verified = from.verified();
    to.model_hash = from.model_hash();
    to.rank = from.rank();
    to.world_size = from.world_size();
    KILN_RETURN_IF_ERROR(fields_.decode_text(from.kiln_version(), to.kiln_version));
    KILN_RETURN_IF_ERROR(fields_.decode_text(from.device(), to.device));
    KILN_RETURN_IF_ERROR(fields_.decode_text(from.precision(), to.precision));
    return fields_.decode_text(from.model_name(), to.model_name);
  }

  template <class V>
  Result<> decode_io(const V* from, std::vector<plan::IoTensor>& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from));
    for (size_t i = 0; i < count(from); ++i) {
      const IoTensor& tensor = *from->Get(uint32_t(i));
      plan::IoTensor& decoded = to.emplace_back();
      decoded.batch_axis = tensor.batch_axis();
      KILN_RETURN_IF_ERROR(fields_.decode_text(tensor.name(), decoded.name));
    }
    return Ok();
  }

  Result<> decode_point(const ShapePoint& from, plan::ShapePoint& to) {
    KILN_RETURN_IF_ERROR(fields_.decode_text(from.name(), to.name));
    to.batch = from.batch();
    to.arena_bytes = from.arena_bytes();
    to.arena_lower_bound_bytes = from.arena_lower_bound_bytes();
    KILN_RETURN_IF_ERROR(decode_point_types(from.inputs(), to.inputs));
    KILN_RETURN_IF_ERROR(decode_point_types(from.outputs(), to.outputs));
    KILN_RETURN_IF_ERROR(decode_fixed_inputs(from, to));
    KILN_RETURN_IF_ERROR(fields_.spend(from.regions()));
    for (size_t i = 0; i < count(from.regions()); ++i) {
      KILN_RETURN_IF_ERROR(fields_.decode_text(from.regions()->Get(uint32_t(i))->name(),
                                               to.region_names.emplace_back()));
    }
    KILN_RETURN_IF_ERROR(fields_.spend(from.steps()));
    for (size_t i = 0; i < count(from.steps()); ++i) {
      auto decoded = decode_step(fields_, *from.steps()->Get(uint32_t(i)), to.steps.emplace_back());
      if (!decoded) return std::move(decoded).error().context("step " + std::to_string(i));
    }
    return Ok();
  }

  Result<> decode_point_types(const flatbuffers::Vector<uint32_t>* from,
                              std::vector<kiln::TensorType>& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from));
    for (size_t i = 0; i < count(from); ++i) {
      KILN_RETURN_IF_ERROR(fields_.decode_type(from->Get(uint32_t(i)), to.emplace_back()));
    }
    return Ok();
  }

  Result<> decode_fixed_inputs(const ShapePoint& from, plan::ShapePoint& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from.fixed_inputs()));
    for (size_t i = 0; i < count(from.fixed_inputs()); ++i) {
      const FixedInput& input = *from.fixed_inputs()->Get(uint32_t(i));
      KILN_RETURN_IF_ERROR(fields_.spend(input.value()));
      plan::FixedInput& decoded = to.fixed_inputs.emplace_back();
      decoded.input = input.input();
      if (input.value() == nullptr) continue;
      const auto* value = reinterpret_cast<const std::byte*>(input.value()->data());
      decoded.value.assign(value, value + input.value()->size());
    }
    return Ok();
  }

  Result<> decode_constants(const Plan& from, plan::Plan& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from.constants()));
    for (size_t i = 0; i < count(from.constants()); ++i) {
      const Constant& constant = *from.constants()->Get(uint32_t(i));
      plan::Constant& decoded = to.constants.emplace_back();
      decoded.offset = constant.offset();
      decoded.bytes = constant.bytes();
      decoded.hash = constant.hash();
      KILN_RETURN_IF_ERROR(fields_.decode_text(constant.name(), decoded.name));
    }
    return Ok();
  }

  Result<> decode_blobs(const Plan& from, plan::Plan& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from.blobs()));
    for (size_t i = 0; i < count(from.blobs()); ++i) {
      const Blob& blob = *from.blobs()->Get(uint32_t(i));
      if (blob.offset() > blobs_.size() || blob.bytes() > blobs_.size() - blob.offset()) {
        return corrupt("blob " + std::to_string(i) + ": " + std::to_string(blob.bytes()) +
                       " bytes at " + std::to_string(blob.offset()) + " end after the section's " +
                       std::to_string(blobs_.size()) + " bytes");
      }
      to.blobs.push_back({blobs_.owner, blobs_.bytes.subspan(blob.offset(), blob.bytes())});
    }
    return Ok();
  }

  Result<> decode_plugins(const Plan& from, plan::Plan& to) {
    KILN_RETURN_IF_ERROR(fields_.spend(from.plugins()));
    for (size_t i = 0; i < count(from.plugins()); ++i) {
      const PluginReference& plugin = *from.plugins()->Get(uint32_t(i));
      plan::PluginReference& decoded = to.plugins.emplace_back();
      KILN_RETURN_IF_ERROR(fields_.decode_text(plugin.name(), decoded.name));
      KILN_RETURN_IF_ERROR(fields_.decode_text(plugin.version(), decoded.version));
    }
    return Ok();
  }

  PlanFields fields_;
  const SharedBytes& blobs_;
};

}  // namespace

Result<plan::Plan> decode_plan(std::span<const std::byte> plan, const SharedBytes& blobs) {
  // Tables are verified once for every use; a written file uses each once, and none is smaller than
  // four bytes.
  const auto most_tables = static_cast<flatbuffers::uoffset_t>(plan.size() / 4 + 1);
  constexpr flatbuffers::uoffset_t kMostDepth = 16;
  constexpr size_t kMostBytes = (size_t{1} << 31) - 1;
  if (plan.size() > kMostBytes) {
    return corrupt("is " + std::to_string(plan.size()) + " bytes, expected at most " +
                   std::to_string(kMostBytes));
  }
  // Scalars are read in place; a section in a mapped file is aligned, one in a caller's block may
  // not be.
  std::vector<uint64_t> aligned;
  const auto* data = reinterpret_cast<const uint8_t*>(plan.data());
  if (reinterpret_cast<uintptr_t>(data) % sizeof(uint64_t) != 0) {
    aligned.resize(plan.size() / sizeof(uint64_t) + 1);
    std::memcpy(aligned.data(), plan.data(), plan.size());
    data = reinterpret_cast<const uint8_t*>(aligned.data());
  }
  flatbuffers::Verifier verifier(data, plan.size(), kMostDepth, most_tables);
  if (!VerifyPlanBuffer(verifier)) return corrupt("is not a valid flatbuffer of plan.fbs");
  return PlanDecoder(plan.size(), blobs).decode(*GetPlan(data));
}

}  // namespace kiln::engine_file
