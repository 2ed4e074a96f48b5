#include <algorithm>
#include <array>

#include "formats/engine_file/plan_fields.h"

namespace kiln::engine_file {
namespace {

constexpr auto kLastSpace = static_cast<uint8_t>(plan::BufferRef::Space::kCache);

plan::BufferRef buffer(const BufferRef* ref) {
  if (ref == nullptr) return {};
  // Out-of-range spaces are stopped by check_spaces() before a decoded plan is handed out.
  return {static_cast<plan::BufferRef::Space>(ref->space()), ref->index(), ref->offset(),
          ref->bytes()};
}

Result<> check_spaces(std::initializer_list<const BufferRef*> refs) {
  for (const BufferRef* ref : refs) {
    if (ref != nullptr && ref->space() > kLastSpace) {
      return corrupt("buffer space is " + std::to_string(ref->space()) + ", expected at most " +
                     std::to_string(kLastSpace));
    }
  }
  return Ok();
}

Result<> decode_operand_list(PlanFields& fields, const flatbuffers::Vector<const Operand*>* from,
                             std::vector<plan::Operand>& to) {
  KILN_RETURN_IF_ERROR(fields.spend(from));
  for (size_t i = 0; i < count(from); ++i) {
    const Operand& operand = *from->Get(uint32_t(i));
    plan::Operand& decoded = to.emplace_back();
    decoded.buffer = buffer(&operand.buffer());
    KILN_RETURN_IF_ERROR(check_spaces({&operand.buffer()}));
    KILN_RETURN_IF_ERROR(fields.decode_type(operand.type(), decoded.type));
  }
  return Ok();
}

template <class From, class To>
Result<> decode_operands(PlanFields& fields, const From& from, To& to) {
  to.workspace = buffer(from.workspace());
  KILN_RETURN_IF_ERROR(check_spaces({from.workspace()}));
  KILN_RETURN_IF_ERROR(decode_operand_list(fields, from.inputs(), to.inputs));
  return decode_operand_list(fields, from.outputs(), to.outputs);
}

std::array<uint32_t, 3> extents(const Extents* from) {
  if (from == nullptr) return {0, 0, 0};
  return {from->x(), from->y(), from->z()};
}

// HostOperation, Matmul, CudnnGraph.
template <class From, class To>
Result<> decode_action(PlanFields& fields, const From& from, To& to) {
  to.operation = from.operation();
  return decode_operands(fields, from, to);
}
Result<> decode_action(PlanFields& fields, const KernelLaunch& from, plan::KernelLaunch& to) {
  to.module = from.module_();
  to.shared_bytes = from.shared_bytes();
  to.programmatic = from.programmatic();
  to.grid = extents(from.grid());
  to.block = extents(from.block());
  KILN_RETURN_IF_ERROR(fields.decode_text(from.entry(), to.entry));
  KILN_RETURN_IF_ERROR(fields.spend(from.tensor_maps()));
  for (size_t i = 0; i < count(from.tensor_maps()); ++i) {
    const TensorMap& map = *from.tensor_maps()->Get(uint32_t(i));
    to.tensor_maps.push_back({map.operand(), map.columns(), map.box_rows()});
  }
  return decode_operands(fields, from, to);
}
Result<> decode_action(PlanFields& fields, const PluginCall& from, plan::PluginCall& to) {
  to.plugin = from.plugin();
  to.attributes = from.attributes();
  return decode_operands(fields, from, to);
}

}  // namespace

Result<> decode_step(PlanFields& fields, const Step& from, plan::Step& to) {
  to.region = from.region();
  switch (from.action_type()) {
    case Action::HostOperation:
      return decode_action(fields, *from.action_as_HostOperation(),
                           to.action.emplace<plan::HostOperation>());
    case Action::PluginCall:
      return decode_action(fields, *from.action_as_PluginCall(),
                           to.action.emplace<plan::PluginCall>());
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
      return decode_action(fields, *from.action_as_KernelLaunch(),
                           to.action.emplace<plan::KernelLaunch>());
    case Action::Matmul:
      return decode_action(fields, *from.action_as_Matmul(), to.action.emplace<plan::Matmul>());
    case Action::CudnnGraph:
      return decode_action(fields, *from.action_as_CudnnGraph(),
                           to.action.emplace<plan::CudnnGraph>());
    default:
      return corrupt("step kind is " + std::to_string(int(from.action_type())) +
                     ", expected 1 to " + std::to_string(int(Action::MAX)));
  }
}

}  // namespace kiln::engine_file
