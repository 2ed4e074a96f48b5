#include "builder/precision/storage.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "builder/fuse/region.h"

namespace kiln::precision {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;

std::string number_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

// The finite element of the largest magnitude, which is the first to leave a narrower range. By
// their bits, which are ordered as magnitudes are: weights are large, and integers compare many at
// a time.
double largest_finite(const SharedBytes& bytes) {
  constexpr int32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
  int32_t largest = 0;
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    int32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i, sizeof bits);
    bits &= kMagnitude;
    bits = bits < kInfinity ? bits : 0;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

// A constant of `graph` that f16 cannot hold: its name and number; "" if there is none.
std::string overflow_of(const Graph& graph, ValueId id) {
  const ir::Value& value = graph.value(id);
  if (!value.constant || value.type.dtype != DType::kF32) return {};
  const double largest = largest_finite(*value.constant);
  if (largest <= kMaxF16) return {};
  return "constant '" + value.name + "' holds " + number_text(largest) + ", over f16's " +
         number_text(kMaxF16);
}

std::string overflow_inside(const Graph& body) {
  for (uint32_t i = 0; i < body.value_count(); ++i) {
    const std::string found = overflow_of(body, ValueId{i});
    if (!found.empty() && !body.value(ValueId{i}).uses.empty()) return found;
  }
  return {};
}

// An opaque operation that picks or averages elements of its first input and rounds once: as right
// in a narrow dtype as its input is.
bool rounds_once(const Graph& body) {
  constexpr std::string_view kNames[] = {"max_pool", "average_pool", "resize", "gather_elements",
                                         "gather_nd"};
  const NodeId id = fuse::anchor_of(body);
  if (id == ir::kNoNode) return false;
  const ir::Node& anchor = body.node(id);
  const auto* opaque = std::get_if<ir::Opaque>(&anchor.op);
  return opaque && anchor.outputs.size() == 1 && body.type(anchor.inputs[0]).dtype == DType::kF32 &&
         std::find(std::begin(kNames), std::end(kNames), opaque->operation.name) !=
             std::end(kNames);
}

class Chooser {
 public:
  Chooser(const Graph& graph, const StorageWish& wish) : graph_(graph), wish_(wish) {
    storage_.narrow_anchor.resize(graph.node_count(), false);
    storage_.reasons.resize(graph.node_count());
    for (uint32_t i = 0; i < graph.value_count(); ++i) {
      storage_.values.push_back(graph.type(ValueId{i}).dtype);
    }
  }

  Storage run() {
    if (wish_.narrow != DType::kF32) {
      const auto order = graph_.topological_order();
      for (NodeId id : order) decide(id);
      // Readers first: how they read decides how a result is stored.
      for (auto id = order.rbegin(); id != order.rend(); ++id) store_results(*id);
    }
    store_interface();
    return std::move(storage_);
  }

 private:
  const Region& region(NodeId id) const { return std::get<Region>(graph_.node(id).op); }

  void decide(NodeId id) {
    std::string& reason = storage_.reasons[index_of(id)];
    const Region& node = region(id);
    if (!wish_.keep.empty()) reason = wish_.keep[index_of(id)];
    if (!reason.empty()) return;
    if (rounds_once(*node.body)) {
      storage_.narrow_anchor[index_of(id)] = true;
    } else if (node.kind == Region::Kind::kOpaque || node.kind == Region::Kind::kPlugin) {
      const auto operation = ir::operation_of(node.body->node(fuse::anchor_of(*node.body)).op);
      reason =
          "'" + (operation ? operation->name : std::string(to_string(node.kind))) + "' runs in f32";
    } else if (node.kind == Region::Kind::kLoop) {
      if (wish_.narrow == DType::kF16) reason = overflow_inside(*node.body);
    } else {
      reason = refusal_of_anchor(id);
      storage_.narrow_anchor[index_of(id)] = reason.empty();
    }
  }

  std::string refusal_of_anchor(NodeId id) const {
    const Graph& body = *region(id).body;
    const ir::Node& anchor = body.node(fuse::anchor_of(body));
    const DType dtype = body.type(anchor.inputs[0]).dtype;
    if (is_float(dtype) && bits_of(dtype) == 8) return {};  // stays so; only borders change
    if (dtype != DType::kF32) return "computes in " + std::string(to_string(dtype));
    if (wish_.narrow != DType::kF16) return {};
    if (const std::string found = overflow_inside(body); !found.empty()) return found;
    for (ValueId input : graph_.node(id).inputs) {
      if (const std::string found = overflow_of(graph_, input); !found.empty()) return found;
    }
    return {};
  }

  // A mask's very negative numbers would become -inf, and rows that are masked fully NaN.
  bool is_attention_mask(const ir::Use& use) const {
    const Region& node = region(use.node);
    if (node.kind != Region::Kind::kAttention) return false;
    const ir::Node& anchor = node.body->node(fuse::anchor_of(*node.body));
    return anchor.inputs.size() > 3 && anchor.inputs[3] == node.body->inputs()[use.slot];
  }

  bool reads_narrow(const ir::Use& use) const {
    const Region::Kind kind = region(use.node).kind;
    if (is_attention_mask(use)) return false;
    return kind == Region::Kind::kLoop || storage_.narrow_anchor[index_of(use.node)];
  }

  void store_results(NodeId id) {
    std::string& reason = storage_.reasons[index_of(id)];
    if (!reason.empty()) return;
    for (ValueId output : graph_.node(id).outputs) {
      if (graph_.type(output).dtype != DType::kF32) continue;
      const auto& uses = graph_.value(output).uses;
      const bool read = std::any_of(uses.begin(), uses.end(),
                                    [&](const ir::Use& use) { return reads_narrow(use); });
      if (read) {
        storage_.values[index_of(output)] = wish_.narrow;
      } else if (!uses.empty()) {
        reason = "'" + graph_.node(uses[0].node).name + "' reads it in f32";
      }
    }
    // Such an operation has one dtype, in and out.
    const ValueId result = graph_.node(id).outputs[0];
    if (rounds_once(*region(id).body) &&
        (storage_.values[index_of(result)] != wish_.narrow || graph_.is_output(result))) {
      storage_.narrow_anchor[index_of(id)] = false;
      if (reason.empty()) reason = "its result is an output of the model";
    }
  }

  void store_interface() {
    for (ValueId input : graph_.inputs()) {
      if (graph_.type(input).dtype == DType::kF32) storage_.values[index_of(input)] = wish_.io;
    }
    for (ValueId output : graph_.outputs()) {
      if (graph_.type(output).dtype == DType::kF32) storage_.values[index_of(output)] = wish_.io;
    }
  }

  const Graph& graph_;
  const StorageWish& wish_;
  Storage storage_;
};

}  // namespace

bool exceeds_f16(const Graph& graph, ValueId constant) {
  return !overflow_of(graph, constant).empty();
}

bool is_narrowed(const Graph& graph, const Storage& storage, NodeId node, DType narrow) {
  const auto& outputs = graph.node(node).outputs;
  return storage.narrow_anchor[index_of(node)] ||
         std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) {
           return graph.type(output).dtype == DType::kF32 &&
                  storage.values[index_of(output)] == narrow;
         });
}

Storage choose_storage(const Graph& graph, const StorageWish& wish) {
  return Chooser(graph, wish).run();
}

}  // namespace kiln::precision
