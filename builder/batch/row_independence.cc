#include "builder/batch/row_independence.h"

#include <algorithm>
#include <map>

#include "builder/batch/row_axis.h"

namespace kiln {
namespace {

using ir::ValueId;
using Outputs = std::optional<std::vector<Rows>>;  // nullopt: may mix rows

class Analysis {
 public:
  Analysis(const ir::Graph& graph, int64_t batch, std::span<const Plugin> plugins)
      : graph_(graph), batch_(batch), plugins_(plugins) {}

  void set_input(ValueId id, Rows rows) { rows_[id] = rows; }

  RowIndependence run() {
    for (ir::NodeId id : graph_.topological_order()) {
      const ir::Node& node = graph_.node(id);
      const Outputs outputs = visit(node);
      if (!outputs) {
        const std::string name = node.origins.empty() ? node.name : node.origins.front();
        return {false, "node '" + name + "' may mix rows of the batch", {}};
      }
      for (size_t i = 0; i < node.outputs.size(); ++i) rows_[node.outputs[i]] = (*outputs)[i];
    }
    RowIndependence result{true, "", {}};
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Rows rows = rows_of(graph_.outputs()[i]);
      if (rows && rows->outer != 1) {
        return {false, "output '" + graph_.output_name(i) + "' does not keep rows together", {}};
      }
      result.output_axes.push_back(rows ? static_cast<int>(rows->axis) : -1);
    }
    return result;
  }

 private:
  Rows rows_of(ValueId id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? std::nullopt : found->second;
  }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  static int64_t rank(const Shape& s) { return static_cast<int64_t>(s.size()); }

  Outputs visit(const ir::Node& node) const {
    std::vector<Rows> inputs;
    for (ValueId id : node.inputs) inputs.push_back(rows_of(id));
    const bool any = std::any_of(inputs.begin(), inputs.end(), [](const Rows& r) { return !!r; });
    if (!any) return std::vector<Rows>(node.outputs.size());
    return std::visit([&](const auto& op) { return follow(op, node, inputs); }, node.op);
  }

  static Outputs one(RowAxis rows) { return std::vector<Rows>{rows}; }
  static RowAxis moved(RowAxis rows, int64_t axis) { return {axis, rows.per_row, rows.outer}; }

  // Inputs aligned from the right, as numpy broadcasts them.
  Outputs aligned(const ir::Node& node, std::span<const Rows> inputs, int64_t out_rank,
                  std::span<const ValueId> values) const {
    Rows found;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!inputs[i]) continue;
      const RowAxis here{inputs[i]->axis + out_rank - rank(shape(values[i])), inputs[i]->per_row,
                         inputs[i]->outer};
      if (found && *found != here) return std::nullopt;
      found = here;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (!inputs[i] && !same_for_every_row(graph_, values[i], *found, out_rank, batch_)) {
        return std::nullopt;
      }
    }
    return std::vector<Rows>(node.outputs.size(), found);
  }

  Outputs follow(const ir::Pointwise&, const ir::Node& node, std::span<const Rows> in) const {
    return aligned(node, in, rank(shape(node.outputs[0])), node.inputs);
  }
  Outputs follow(const ir::Cast&, const ir::Node&, std::span<const Rows> in) const {
    return one(*in[0]);
  }
  Outputs follow(const ir::Broadcast& op, const ir::Node& node, std::span<const Rows> in) const {
    return aligned(node, in, rank(op.shape), node.inputs);
  }
  Outputs follow(const ir::Reduce& op, const ir::Node&, std::span<const Rows> in) const {
    RowAxis rows = *in[0];
    int64_t dropped = 0;
    for (int64_t axis : op.axes) {
      if (axis == rows.axis) return std::nullopt;
      dropped += !op.keep_dims && axis < rows.axis;
    }
    rows.axis -= dropped;
    return one(rows);
  }
  Outputs follow(const ir::Transpose& op, const ir::Node&, std::span<const Rows> in) const {
    const auto at = std::find(op.perm.begin(), op.perm.end(), in[0]->axis);
    return one(moved(*in[0], at - op.perm.begin()));
  }
  Outputs follow(const ir::Reshape& op, const ir::Node& node, std::span<const Rows> in) const {
    const auto rows = reshape_rows(*in[0], shape(node.inputs[0]), op.shape, batch_);
    return rows ? one(*rows) : std::nullopt;
  }
  Outputs follow(const ir::Slice& op, const ir::Node& node, std::span<const Rows> in) const {
    const auto axis = static_cast<size_t>(in[0]->axis);
    const bool whole = op.sizes[axis] == shape(node.inputs[0])[axis] && op.steps[axis] == 1;
    return whole ? one(*in[0]) : std::nullopt;
  }
  Outputs follow(const ir::Pad& op, const ir::Node&, std::span<const Rows> in) const {
    if (!in[0] || in[1]) return std::nullopt;
    const auto axis = static_cast<size_t>(in[0]->axis);
    return op.before[axis] == 0 && op.after[axis] == 0 ? one(*in[0]) : std::nullopt;
  }
  Outputs follow(const ir::Concat& op, const ir::Node& node, std::span<const Rows> in) const {
    Outputs outputs = aligned(node, in, rank(shape(node.outputs[0])), node.inputs);
    if (!outputs || (*outputs)[0]->axis == op.axis) return std::nullopt;
    return outputs;
  }
  Outputs follow(const ir::Gather& op, const ir::Node& node, std::span<const Rows> in) const {
    if (in[0] && in[1]) return std::nullopt;
    if (in[1]) return one(moved(*in[1], op.axis + in[1]->axis));
    if (in[0]->axis == op.axis) {
      const auto rows = gathered_rows(graph_.value(node.inputs[1]), *in[0], batch_);
      return rows ? one(moved(*rows, op.axis + rows->axis)) : std::nullopt;
    }
    const int64_t shift = in[0]->axis > op.axis ? rank(shape(node.inputs[1])) - 1 : 0;
    return one(moved(*in[0], in[0]->axis + shift));
  }
  Outputs follow(const ir::MatMul& op, const ir::Node& node, std::span<const Rows> in) const {
    const int64_t out_rank = rank(shape(node.outputs[0]));
    const auto is_matrix_axis = [&](size_t i) {
      return in[i] && in[i]->axis >= rank(shape(node.inputs[i])) - 2;
    };
    if (!is_matrix_axis(0) && !is_matrix_axis(1)) return aligned(node, in, out_rank, node.inputs);
    const size_t i = is_matrix_axis(0) ? 0 : 1;
    if (in[1 - i]) return std::nullopt;
    const int64_t last = rank(shape(node.inputs[i])) - 1;
    const bool transposed = i == 0 ? op.transpose_a : op.transpose_b;
    // The axis of a that is M, of b that is N; the other is summed over.
    const int64_t kept = (i == 0) == transposed ? last : last - 1;
    if (in[i]->axis != kept) return std::nullopt;
    return one(moved(*in[i], i == 0 ? out_rank - 2 : out_rank - 1));
  }
  Outputs follow_conv(std::span<const Rows> in) const {
    const bool others = std::any_of(in.begin() + 1, in.end(), [](const Rows& r) { return !!r; });
    return !others && in[0]->axis == 0 ? one(*in[0]) : std::nullopt;
  }
  Outputs follow(const ir::Conv&, const ir::Node&, std::span<const Rows> in) const {
    return follow_conv(in);
  }
  Outputs follow(const ir::ConvTranspose&, const ir::Node&, std::span<const Rows> in) const {
    return follow_conv(in);
  }
  Outputs follow(const ir::Attention&, const ir::Node& node, std::span<const Rows> in) const {
    Outputs outputs = aligned(node, in, 4, node.inputs);
    if (!outputs || (*outputs)[0]->axis != 0) return std::nullopt;
    return outputs;
  }
  Outputs follow(const ir::Opaque&, const ir::Node& node, std::span<const Rows> in) const {
    return opaque_rows(graph_, node, in, batch_);
  }
  Outputs follow(const ir::PluginCall& op, const ir::Node& node, std::span<const Rows> in) const {
    const Plugin* plugin = find_plugin(plugins_, op.name, op.version);
    if (!plugin || !plugin->rows_independent(op.attributes)) return std::nullopt;
    for (size_t i = 0; i < in.size(); ++i) {
      const bool has_rows = !shape(node.inputs[i]).empty() && shape(node.inputs[i])[0] == batch_;
      if (in[i] ? *in[i] != RowAxis{0, 1} : has_rows) return std::nullopt;
    }
    for (ValueId id : node.outputs) {
      if (shape(id).empty() || shape(id)[0] != batch_) return std::nullopt;
    }
    return std::vector<Rows>(node.outputs.size(), RowAxis{0, 1});
  }
  template <class ControlFlow>
  Outputs follow(const ControlFlow&, const ir::Node&, std::span<const Rows>) const {
    return std::nullopt;
  }

  const ir::Graph& graph_;
  int64_t batch_;
  std::span<const Plugin> plugins_;
  std::map<ValueId, Rows> rows_;
};

}  // namespace

RowIndependence analyze_rows(const ir::Graph& graph, const ShapePoint& point,
                             std::span<const Plugin> plugins) {
  Analysis analysis(graph, point.batch, plugins);
  for (ValueId id : graph.inputs()) {
    const auto axis = point.batch_axes.find(graph.value(id).name);
    if (axis != point.batch_axes.end()) analysis.set_input(id, RowAxis{axis->second, 1});
  }
  return analysis.run();
}

}  // namespace kiln
