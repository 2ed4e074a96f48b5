#include <algorithm>
#include <cstring>
#include <string>

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/encode_plan.h"
#include "formats/engine_file/plan_generated.h"

namespace kiln::engine_file {
namespace {

Error corrupt(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

constexpr auto kLastSpace = static_cast<uint8_t>(plan::BufferRef::Space::kCache);
constexpr auto kLastTarget = static_cast<uint8_t>(plan::Target::kCuda);

plan::BufferRef buffer(const BufferRef* ref) {
  if (ref == nullptr) return {};
  // Out-of-range spaces are stopped by valid_spaces() before a decoded plan is handed out.
  return {static_cast<plan::BufferRef::Space>(ref->space()), ref->index(), ref->offset(),
          ref->bytes()};
}

// Decodes a verified buffer. A writer never lets two fields share bytes, so all that is decoded is
// no larger than the section; `budget_` holds hostile files, in which many tables point at one long
// vector, to the same.
class PlanDecoder {
 public:
  PlanDecoder(size_t section_bytes, const SharedBytes& blobs)
      : budget_(section_bytes), blobs_(blobs) {}

  Result<plan::Plan> decode(const Plan& from) {
    plan::Plan plan;
    KILN_RETURN_IF_ERROR(decode_types(from));
    KILN_RETURN_IF_ERROR(decode_origin(*from.origin(), plan.origin));
    KILN_RETURN_IF_ERROR(decode_io(from.inputs(), plan.inputs));
    KILN_RETURN_IF_ERROR(decode_io(from.outputs(), plan.outputs));
    plan.batch_padding = from.batch_padding();
    KILN_RETURN_IF_ERROR(decode_text(from.batch_padding_reason(), plan.batch_padding_reason));
    KILN_RETURN_IF_ERROR(spend(from.points()));
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
  template <class V>
  static size_t count(const V* vector) {
    return vector == nullptr ? 0 : vector->size();
  }

  template <class V>
  Result<> spend(const V* vector) {
    const size_t bytes = count(vector) * sizeof(typename V::value_type);
    if (bytes > budget_) return corrupt("several fields share the same bytes");
    budget_ -= bytes;
    return Ok();
  }

  Result<> decode_text(const flatbuffers::String* from, std::string& to) {
    KILN_RETURN_IF_ERROR(spend(from));
    if (from != nullptr) to = from->str();
    return Ok();
  }

  Result<> decode_types(const Plan& from) {
    KILN_RETURN_IF_ERROR(spend(from.types()));
    for (size_t i = 0; i < count(from.types()); ++i) {
      const TensorType& type = *from.types()->Get(uint32_t(i));
      if (type.dtype() >= kDTypeCount) {
        return corrupt("type " + std::to_string(i) + ": dtype is " + std::to_string(type.dtype()) +
                       ", expected less than " + std::to_string(kDTypeCount));
      }
      // Types are used by number: a long one would cost its memory again at each use.
      if (count(type.shape()) > plan::kMostRank) {
        return corrupt("type " + std::to_string(i) + ": rank is " +
                       std::to_string(count(type.shape())) + ", expected at most " +
                       std::to_string(plan::kMostRank));
      }
      KILN_RETURN_IF_ERROR(spend(type.shape()));
      kiln::TensorType& decoded = types_.emplace_back();
      decoded.dtype = static_cast<DType>(type.dtype());
      if (type.shape() != nullptr) decoded.shape.assign(type.shape()->begin(), type.shape()->end());
    }
    return Ok();
  }

  Result<> decode_type(uint32_t number, kiln::TensorType& to) {
    if (number >= types_.size()) {
      return corrupt("type number is " + std::to_string(number) + ", expected less than " +
                     std::to_string(types_.size()));
    }
    to = types_[number];
    return Ok();
  }

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
    KILN_RETURN_IF_ERROR(decode_text(from.kiln_version(), to.kiln_version));
    KILN_RETURN_IF_ERROR(decode_text(from.device(), to.device));
    KILN_RETURN_IF_ERROR(decode_text(from.precision(), to.precision));
    return decode_text(from.model_name(), to.model_name);
  }

  template <class V>
  Result<> decode_io(const V* from, std::vector<plan::IoTensor>& to) {
    KILN_RETURN_IF_ERROR(spend(from));
    for (size_t i = 0; i < count(from); ++i) {
      const IoTensor& tensor = *from->Get(uint32_t(i));
      plan::IoTensor& decoded = to.emplace_back();
      decoded.batch_axis = tensor.batch_axis();
      KILN_RETURN_IF_ERROR(decode_text(tensor.name(), decoded.name));
    }
    return Ok();
  }

  Result<> decode_point(const ShapePoint& from, plan::ShapePoint& to) {
    KILN_RETURN_IF_ERROR(decode_text(from.name(), to.name));
    to.batch = from.batch();
    to.arena_bytes = from.arena_bytes();
    to.arena_lower_bound_bytes = from.arena_lower_bound_bytes();
    KILN_RETURN_IF_ERROR(decode_point_types(from.inputs(), to.inputs));
    KILN_RETURN_IF_ERROR(decode_point_types(from.outputs(), to.outputs));
    KILN_RETURN_IF_ERROR(decode_fixed_inputs(from, to));
    KILN_RETURN_IF_ERROR(spend(from.regions()));
    for (size_t i = 0; i < count(from.regions()); ++i) {
      KILN_RETURN_IF_ERROR(
          decode_text(from.regions()->Get(uint32_t(i))->name(), to.region_names.emplace_back()));
    }
    KILN_RETURN_IF_ERROR(spend(from.steps()));
    for (size_t i = 0; i < count(from.steps()); ++i) {
      auto decoded = decode_step(*from.steps()->Get(uint32_t(i)), to.steps.emplace_back());
      if (!decoded) return std::move(decoded).error().context("step " + std::to_string(i));
    }
    return Ok();
  }

  Result<> decode_point_types(const flatbuffers::Vector<uint32_t>* from,
                              std::vector<kiln::TensorType>& to) {
    KILN_RETURN_IF_ERROR(spend(from));
    for (size_t i = 0; i < count(from); ++i) {
      KILN_RETURN_IF_ERROR(decode_type(from->Get(uint32_t(i)), to.emplace_back()));
    }
    return Ok();
  }

  Result<> decode_fixed_inputs(const ShapePoint& from, plan::ShapePoint& to) {
    KILN_RETURN_IF_ERROR(spend(from.fixed_inputs()));
    for (size_t i = 0; i < count(from.fixed_inputs()); ++i) {
      const FixedInput& input = *from.fixed_inputs()->Get(uint32_t(i));
      KILN_RETURN_IF_ERROR(spend(input.value()));
      plan::FixedInput& decoded = to.fixed_inputs.emplace_back();
      decoded.input = input.input();
      if (input.value() == nullptr) continue;
      const auto* value = reinterpret_cast<const std::byte*>(input.value()->data());
      decoded.value.assign(value, value + input.value()->size());
    }
    return Ok();
  }

  Result<> decode_step(const Step& from, plan::Step& to) {
    to.region = from.region();
    switch (from.action_type()) {
      case Action::HostOperation:
        return decode_action(*from.action_as_HostOperation(),
                             to.action.emplace<plan::HostOperation>());
      case Action::PluginCall:
        return decode_action(*from.action_as_PluginCall(), to.action.emplace<plan::PluginCall>());
      case Action::Copy: {
        const Copy& copy = *from.action_as_Copy();
        to.action = plan::Copy{buffer(copy.from()), buffer(copy.to())};
        return check_spaces({copy.from(), copy.to()});
      }
      case Action::Branch: {
        const Branch& branch = *from.action_as_Branch();
        to.action =
            plan::Branch{buffer(branch.condition()), branch.then_steps(), branch.else_steps()};
        return check_spaces({branch.condition()});
      }
      case Action::Repeat: {
        const Repeat& repeat = *from.action_as_Repeat();
        to.action = plan::Repeat{buffer(repeat.trip_count()), buffer(repeat.condition()),
                                 buffer(repeat.iteration()), repeat.body_steps()};
        return check_spaces({repeat.trip_count(), repeat.condition(), repeat.iteration()});
      }
      case Action::KernelLaunch:
        return decode_action(*from.action_as_KernelLaunch(),
                             to.action.emplace<plan::KernelLaunch>());
      case Action::Matmul:
        return decode_action(*from.action_as_Matmul(), to.action.emplace<plan::Matmul>());
      case Action::CudnnGraph:
        return decode_action(*from.action_as_CudnnGraph(), to.action.emplace<plan::CudnnGraph>());
      default:
        return corrupt("step kind is " + std::to_string(int(from.action_type())) +
                       ", expected 1 to " + std::to_string(int(Action::MAX)));
    }
  }

  // HostOperation, Matmul, CudnnGraph.
  template <class From, class To>
  Result<> decode_action(const From& from, To& to) {
    to.operation = from.operation();
    return decode_operands(from, to);
  }
  Result<> decode_action(const KernelLaunch& from, plan::KernelLaunch& to) {
    to.module = from.module_();
    to.shared_bytes = from.shared_bytes();
    to.programmatic = from.programmatic();
    to.grid = extents(from.grid());
    to.block = extents(from.block());
    KILN_RETURN_IF_ERROR(decode_text(from.entry(), to.entry));
    return decode_operands(from, to);
  }
  static std::array<uint32_t, 3> extents(const Extents* from) {
    if (from == nullptr) return {0, 0, 0};
    return {from->x(), from->y(), from->z()};
  }
  Result<> decode_action(const PluginCall& from, plan::PluginCall& to) {
    to.plugin = from.plugin();
    to.attributes = from.attributes();
    return decode_operands(from, to);
  }

  template <class From, class To>
  Result<> decode_operands(const From& from, To& to) {
    to.workspace = buffer(from.workspace());
    KILN_RETURN_IF_ERROR(check_spaces({from.workspace()}));
    KILN_RETURN_IF_ERROR(decode_operand_list(from.inputs(), to.inputs));
    return decode_operand_list(from.outputs(), to.outputs);
  }

  Result<> decode_operand_list(const flatbuffers::Vector<const Operand*>* from,
                               std::vector<plan::Operand>& to) {
    for (size_t i = 0; i < count(from); ++i) {
      const Operand& operand = *from->Get(uint32_t(i));
      if (budget_ < sizeof(Operand)) return corrupt("several fields share the same bytes");
      budget_ -= sizeof(Operand);
      plan::Operand& decoded = to.emplace_back();
      decoded.buffer = buffer(&operand.buffer());
      KILN_RETURN_IF_ERROR(check_spaces({&operand.buffer()}));
      KILN_RETURN_IF_ERROR(decode_type(operand.type(), decoded.type));
    }
    return Ok();
  }

  static Result<> check_spaces(std::initializer_list<const BufferRef*> refs) {
    for (const BufferRef* ref : refs) {
      if (ref != nullptr && ref->space() > kLastSpace) {
        return corrupt("buffer space is " + std::to_string(ref->space()) + ", expected at most " +
                       std::to_string(kLastSpace));
      }
    }
    return Ok();
  }

  Result<> decode_constants(const Plan& from, plan::Plan& to) {
    KILN_RETURN_IF_ERROR(spend(from.constants()));
    for (size_t i = 0; i < count(from.constants()); ++i) {
      const Constant& constant = *from.constants()->Get(uint32_t(i));
      plan::Constant& decoded = to.constants.emplace_back();
      decoded.offset = constant.offset();
      decoded.bytes = constant.bytes();
      decoded.hash = constant.hash();
      KILN_RETURN_IF_ERROR(decode_text(constant.name(), decoded.name));
    }
    return Ok();
  }

  Result<> decode_blobs(const Plan& from, plan::Plan& to) {
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
    KILN_RETURN_IF_ERROR(spend(from.plugins()));
    for (size_t i = 0; i < count(from.plugins()); ++i) {
      const PluginReference& plugin = *from.plugins()->Get(uint32_t(i));
      plan::PluginReference& decoded = to.plugins.emplace_back();
      KILN_RETURN_IF_ERROR(decode_text(plugin.name(), decoded.name));
      KILN_RETURN_IF_ERROR(decode_text(plugin.version(), decoded.version));
    }
    return Ok();
  }

  size_t budget_;
  const SharedBytes& blobs_;
  std::vector<kiln::TensorType> types_;
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
