#include "engine/steps/spaces.h"

namespace kiln {

using Space = plan::BufferRef::Space;

const void* Spaces::read(const plan::BufferRef& ref) const {
  switch (ref.space) {
    case Space::kWeights:
      return weights + ref.offset;
    case Space::kInput:
      return static_cast<const std::byte*>(inputs[ref.index]) + ref.offset;
    default:
      return write(ref);
  }
}

void* Spaces::write(const plan::BufferRef& ref) const {
  switch (ref.space) {
    case Space::kArena:
      return arena + ref.offset;
    case Space::kOutput:
      return static_cast<std::byte*>(outputs[ref.index]) + ref.offset;
    default:
      return nullptr;
  }
}

void CallAddresses::resolve(const Spaces& spaces, const std::vector<plan::Operand>& from,
                            const std::vector<plan::Operand>& to) {
  inputs.clear();
  for (const plan::Operand& operand : from) inputs.push_back(spaces.read(operand.buffer));
  outputs.clear();
  for (const plan::Operand& operand : to) outputs.push_back(spaces.write(operand.buffer));
}

}  // namespace kiln
