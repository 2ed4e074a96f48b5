#include "builder/emit/place_buffers.h"

#include <algorithm>
#include <optional>

#include "builder/memory/plan_memory.h"

namespace kiln {
namespace {

using ir::ValueId;
using plan::BufferRef;
using Space = BufferRef::Space;

// Where a value's bytes are. For the arena `lifetime` is the number of its buffer.
struct Storage {
  Space space = Space::kNone;
  uint32_t index = 0;
  size_t lifetime = 0;
  BufferRef weights;
};

class Placer {
 public:
  Placer(const Schedule& schedule, ConstantPool& constants, uint64_t apart_bytes)
      : schedule_(schedule),
        graph_(schedule.graph),
        constants_(constants),
        apart_bytes_(apart_bytes) {}

  Placed run() {
    bind_inputs_and_constants();
    claim_outputs();
    find_last_uses();
    for (size_t step = 0; step < schedule_.regions.size(); ++step) {
      visit(schedule_.regions[step], static_cast<int64_t>(step));
    }
    return finish(place_apart());
  }

 private:
  Placement place_apart() const {
    std::vector<Lifetime> wide = lifetimes_;
    for (Lifetime& life : wide) life.bytes += life.bytes == 0 ? 0 : 2 * apart_bytes_;
    Placement placement = plan_memory(wide);
    for (uint64_t& offset : placement.offsets) offset += apart_bytes_;
    return placement;
  }

  uint64_t bytes_of(ValueId id) const { return static_cast<uint64_t>(graph_.type(id).bytes()); }

  void bind_inputs_and_constants() {
    for (uint32_t i = 0; i < graph_.inputs().size(); ++i) {
      storage_[graph_.inputs()[i]] = {Space::kInput, i, 0, {}};
    }
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ir::Value& value = graph_.value(ValueId{i});
      const bool needed = !value.uses.empty() || graph_.is_output(ValueId{i});
      if (!value.constant || !needed) continue;
      storage_[ValueId{i}] = {Space::kWeights, 0, 0, constants_.add(value.name, *value.constant)};
    }
    for (const ScheduledRegion& region : schedule_.regions) {
      const ir::Node& node = graph_.node(region.node);
      if (region.alias) root_[node.outputs[0]] = root(node.inputs[0]);
    }
  }

  ValueId root(ValueId id) const {
    const auto found = root_.find(id);
    return found == root_.end() ? id : found->second;
  }

  // The first output that names a region's value is where that value lives.
  void claim_outputs() {
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId value = root(graph_.outputs()[i]);
      if (storage_.contains(value)) {
        copied_outputs_.push_back(i);
      } else {
        storage_[value] = {Space::kOutput, i, 0, {}};
      }
    }
  }

  void find_last_uses() {
    for (size_t step = 0; step < schedule_.regions.size(); ++step) {
      const ScheduledRegion& region = schedule_.regions[step];
      if (region.alias) continue;
      for (ValueId input : graph_.node(region.node).inputs) {
        last_use_[root(input)] = static_cast<int64_t>(step);
      }
    }
  }

  size_t add_lifetime(std::string name, Lifetime life) {
    lifetimes_.push_back(life);
    names_.push_back(std::move(name));
    return lifetimes_.size() - 1;
  }

  // The arena buffer that output 0 may take over at this step, if any.
  std::optional<size_t> in_place_source(const ScheduledRegion& region, int64_t step) const {
    const ir::Node& node = graph_.node(region.node);
    for (uint32_t i : region.lowered.in_place_inputs) {
      const ValueId input = root(node.inputs[i]);
      const auto& storage = storage_.at(input);
      if (storage.space != Space::kArena || last_use_.at(input) != step) continue;
      const auto readers = std::count_if(node.inputs.begin(), node.inputs.end(),
                                         [&](ValueId id) { return root(id) == input; });
      if (readers == 1 && lifetimes_[storage.lifetime].bytes >= bytes_of(node.outputs[0])) {
        return storage.lifetime;
      }
    }
    return std::nullopt;
  }

  void visit(const ScheduledRegion& region, int64_t step) {
    if (region.alias) return;
    const ir::Node& node = graph_.node(region.node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (storage_.contains(output)) continue;  // a graph output
      const auto last = last_use_.find(output);
      Lifetime life{bytes_of(output), step, last == last_use_.end() ? step : last->second, {}};
      if (i == 0) life.in_place_of = in_place_source(region, step);
      const std::string& name = graph_.value(output).name;
      const size_t number = add_lifetime(name.empty() ? region.name : name, life);
      storage_[output] = {Space::kArena, 0, number, {}};
    }
    auto& temporaries = temporary_lifetimes_.emplace_back();
    for (const TensorType& type : region.lowered.temporaries) {
      const auto bytes = static_cast<uint64_t>(type.bytes());
      temporaries.push_back(add_lifetime(region.name + " (temporary)", {bytes, step, step, {}}));
    }
    const uint64_t workspace = largest_workspace(region.lowered);
    temporaries.push_back(add_lifetime(region.name + " (workspace)", {workspace, step, step, {}}));
    memory_.workspace_bytes = std::max(memory_.workspace_bytes, workspace);
  }

  BufferRef arena_ref(const Placement& placement, size_t lifetime, uint64_t bytes) const {
    return {Space::kArena, 0, placement.offsets[lifetime], bytes};
  }

  BufferRef ref(const Placement& placement, ValueId id) const {
    const Storage& storage = storage_.at(root(id));
    if (storage.space == Space::kArena) return arena_ref(placement, storage.lifetime, bytes_of(id));
    if (storage.space == Space::kWeights) return storage.weights;
    return {storage.space, storage.index, 0, bytes_of(id)};
  }

  PlacedRegion place(const Placement& placement, const ScheduledRegion& region,
                     const std::vector<size_t>& temporaries) {
    PlacedRegion placed;
    const ir::Node& node = graph_.node(region.node);
    for (ValueId id : node.inputs) placed.inputs.push_back(ref(placement, id));
    for (ValueId id : node.outputs) placed.outputs.push_back(ref(placement, id));
    for (size_t i = 0; i + 1 < temporaries.size(); ++i) {
      placed.temporaries.push_back(
          arena_ref(placement, temporaries[i], lifetimes_[temporaries[i]].bytes));
    }
    const uint64_t workspace = lifetimes_[temporaries.back()].bytes;
    if (workspace) placed.workspace = arena_ref(placement, temporaries.back(), workspace);
    for (const HostTensor& constant : region.lowered.constants) {
      placed.constants.push_back(constants_.add(region.name, constant.bytes));
    }
    return placed;
  }

  Placed finish(const Placement& placement) {
    Placed result;
    size_t next = 0;
    for (const ScheduledRegion& region : schedule_.regions) {
      result.regions.emplace_back();
      if (region.alias) continue;
      result.regions.back() = place(placement, region, temporary_lifetimes_[next++]);
    }
    for (uint32_t i : copied_outputs_) {
      const ValueId value = graph_.outputs()[i];
      result.final_copies.push_back(
          {ref(placement, value), {Space::kOutput, i, 0, bytes_of(value)}});
    }
    memory_.arena_bytes = placement.arena_bytes;
    memory_.lower_bound_bytes = placement.lower_bound_bytes;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      const Lifetime& life = lifetimes_[i];
      if (life.bytes == 0) continue;
      memory_.buffers.push_back({names_[i], placement.offsets[i], life.bytes, life.first, life.last,
                                 life.in_place_of ? names_[*life.in_place_of] : ""});
    }
    result.memory = std::move(memory_);
    return result;
  }

  const Schedule& schedule_;
  const ir::Graph& graph_;
  ConstantPool& constants_;
  uint64_t apart_bytes_;
  std::map<ValueId, ValueId> root_;  // of alias outputs
  std::map<ValueId, Storage> storage_;
  std::map<ValueId, int64_t> last_use_;
  std::vector<uint32_t> copied_outputs_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::string> names_;
  std::vector<std::vector<size_t>> temporary_lifetimes_;  // workspace last; aliases have none
  report::Memory memory_;
};

}  // namespace

bool is_alias(const ir::Region& region) {
  const ir::Graph& body = *region.body;
  if (body.inputs().size() != 1 || body.outputs().size() != 1) return false;
  for (ir::NodeId id : body.topological_order()) {
    if (!std::holds_alternative<ir::Reshape>(body.node(id).op)) return false;
  }
  // A body that passes a constant on has nothing to be an alias of.
  return !body.value(body.outputs()[0]).constant;
}

Placed place_buffers(const Schedule& schedule, ConstantPool& constants, uint64_t apart_bytes) {
  return Placer(schedule, constants, apart_bytes).run();
}

}  // namespace kiln
