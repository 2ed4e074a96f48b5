#include "builder/precision/retype_graph.h"

#include "builder/clean/constant_value.h"
#include "builder/precision/retype_body.h"

namespace kiln::precision {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::Region;
using ir::ValueId;

// Loops read constants up to this size (norms' scales, biases) in f32: it costs next to nothing.
constexpr int64_t kSmallConstantBytes = 64 << 10;

// Builds the graph anew with the chosen dtypes.
class Rewriter {
 public:
  Rewriter(const Graph& old, const Storage& storage, DType narrow, ConvertedConstants& constants)
      : old_(old), storage_(storage), narrow_(narrow), constants_(constants) {}

  Result<Graph> run() {
    for (ValueId input : old_.inputs()) {
      const ir::Value& value = old_.value(input);
      map_[input] = graph_.add_input(value.name, {dtype_of(input), value.type.shape});
    }
    for (NodeId id : old_.topological_order()) {
      Result<> copied = copy(id);
      if (!copied.ok())
        return std::move(copied).error().context("node '" + old_.node(id).name + "'");
    }
    for (size_t i = 0; i < old_.outputs().size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const ValueId output,
                            in_dtype(old_.outputs()[i], dtype_of(old_.outputs()[i])));
      graph_.mark_output(output);
      graph_.set_output_name(i, old_.output_name(i));
    }
    return std::move(graph_);
  }

 private:
  DType dtype_of(ValueId id) const { return storage_.values[index_of(id)]; }

  // The value in `dtype`: as it is stored, converted at build time, or cast by a region of its own.
  Result<ValueId> in_dtype(ValueId id, DType dtype) {
    const auto known = converted_.find({id, dtype});
    if (known != converted_.end()) return known->second;
    const ir::Value& value = old_.value(id);
    ValueId result;
    if (value.constant) {
      KILN_ASSIGN_OR_RETURN(SharedBytes bytes, constants_.get(old_, id, dtype));
      result = graph_.add_constant(value.name, {dtype, value.type.shape}, std::move(bytes));
    } else if (graph_.type(map_.at(id)).dtype == dtype) {
      result = map_.at(id);
    } else {
      KILN_ASSIGN_OR_RETURN(result, cast_region(map_.at(id), value, dtype));
    }
    return converted_[{id, dtype}] = result;
  }

  Result<ValueId> cast_region(ValueId from, const ir::Value& value, DType dtype) {
    const std::string name = value.name + ".as_" + std::string(to_string(dtype));
    auto body = std::make_shared<Graph>();
    const ValueId input = body->add_input(value.name, graph_.type(from));
    KILN_ASSIGN_OR_RETURN(const NodeId cast,
                          body->add_node(name, {}, ir::Cast{dtype, true}, {input}));
    body->mark_output(body->result(cast));
    const Region region{Region::Kind::kLoop, std::move(body), {}, "choose-precision"};
    KILN_ASSIGN_OR_RETURN(const NodeId id, graph_.add_node(name, {}, region, {from}));
    graph_.set_value_name(graph_.result(id), name);
    return graph_.result(id);
  }

  // The dtype in which a region reads input `slot`.
  DType read_dtype(NodeId id, size_t slot, const std::vector<bool>& operands) const {
    const ValueId input = old_.node(id).inputs[slot];
    const TensorType& type = old_.type(input);
    if (type.dtype != DType::kF32) return type.dtype;
    const Region& region = std::get<Region>(old_.node(id).op);
    const bool narrow_anchor = storage_.narrow_anchor[index_of(id)];
    if (operands[slot]) return narrow_anchor ? narrow_ : DType::kF32;
    if (region.kind == Region::Kind::kOpaque || region.kind == Region::Kind::kPlugin) {
      return DType::kF32;
    }
    if (!old_.value(input).constant) return dtype_of(input);
    const bool stays_wide = type.bytes() <= kSmallConstantBytes ||
                            !storage_.reasons[index_of(id)].empty() || narrow_ == DType::kF32 ||
                            overflows(input);
    return stays_wide ? DType::kF32 : narrow_;
  }

  bool overflows(ValueId constant) const {
    return narrow_ == DType::kF16 && exceeds_f16(old_, constant);
  }

  Result<> copy(NodeId id) {
    const ir::Node& node = old_.node(id);
    const Region& region = std::get<Region>(node.op);
    const auto operands = anchor_operands(*region.body);
    Borders borders;
    std::vector<ValueId> inputs;
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      borders.inputs.push_back(read_dtype(id, slot, operands));
      KILN_ASSIGN_OR_RETURN(const ValueId input, in_dtype(node.inputs[slot], borders.inputs[slot]));
      inputs.push_back(input);
    }
    std::vector<TensorType> types;
    const bool opaque =
        !storage_.narrow_anchor[index_of(id)] &&
        (region.kind == Region::Kind::kOpaque || region.kind == Region::Kind::kPlugin);
    for (ValueId output : node.outputs) {
      // What cannot round as it stores leaves that to a cast behind it.
      borders.outputs.push_back(opaque ? old_.type(output).dtype : dtype_of(output));
      types.push_back({borders.outputs.back(), old_.type(output).shape});
    }
    if (storage_.narrow_anchor[index_of(id)]) borders.anchor = narrow_;
    Region retyped = region;
    if (!opaque) {
      KILN_ASSIGN_OR_RETURN(retyped.body, retype_body(*region.body, borders));
    }
    const NodeId copied = graph_.add_typed_node(node.name, node.origins, std::move(retyped),
                                                std::move(inputs), types);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      map_[node.outputs[i]] = graph_.node(copied).outputs[i];
      graph_.set_value_name(map_[node.outputs[i]], old_.value(node.outputs[i]).name);
    }
    return Ok();
  }

  const Graph& old_;
  const Storage& storage_;
  DType narrow_;
  ConvertedConstants& constants_;
  Graph graph_;
  std::map<ValueId, ValueId> map_;
  std::map<std::pair<ValueId, DType>, ValueId> converted_;
};

}  // namespace

Result<SharedBytes> ConvertedConstants::get(const Graph& graph, ValueId constant, DType dtype) {
  const ir::Value& value = graph.value(constant);
  if (value.type.dtype == dtype) return *value.constant;
  std::erase_if(converted_, [](const auto& one) { return one.second.source.expired(); });
  const SharedBytes& source = *value.constant;
  const Key key{source.data(), source.size(), value.type.dtype, dtype};
  const auto known = converted_.find(key);
  if (known != converted_.end()) return known->second.bytes;
  KILN_ASSIGN_OR_RETURN(SharedBytes bytes, clean::convert(value.type, source, dtype));
  converted_[key] = {source.owner, bytes};
  return bytes;
}

Result<Graph> retype_graph(const Graph& graph, const Storage& storage, DType narrow,
                           ConvertedConstants& constants) {
  return Rewriter(graph, storage, narrow, constants).run();
}

}  // namespace kiln::precision
