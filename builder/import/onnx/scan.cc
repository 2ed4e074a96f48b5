// Scan: its length is an extent, so it is always unrolled.
#include <algorithm>

#include "builder/import/onnx/bodies.h"

namespace kiln::onnx_import {
namespace {

std::string number(size_t value) { return std::to_string(value); }

struct ScanNode {
  const onnx::Graph* body = nullptr;
  size_t states = 0, scanned = 0, outputs = 0;  // outputs: the stacked ones
  std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;
};

Result<ScanNode> read_scan(NodeContext& c) {
  ScanNode scan;
  scan.body = c.get_graph("body");
  const int64_t scanned = c.get_int("num_scan_inputs", 0);
  if (!scan.body || scanned < 1 || scanned > static_cast<int64_t>(c.input_count())) {
    return c.fail("body is missing, or num_scan_inputs is " + std::to_string(scanned));
  }
  if (c.opset() < 9)
    return c.unsupported("Scan of operator set 8 is not supported; use 9 or newer");
  scan.scanned = static_cast<size_t>(scanned);
  scan.states = c.input_count() - scan.scanned;
  if (scan.body->inputs.size() != c.input_count() || scan.body->outputs.size() < scan.states) {
    return c.fail("the body takes " + number(scan.body->inputs.size()) + " values, expected " +
                  number(c.input_count()));
  }
  scan.outputs = scan.body->outputs.size() - scan.states;
  const auto list = [&](const char* name, size_t count) {
    auto values = c.get_ints(name);
    values.resize(count, 0);
    return values;
  };
  scan.input_axes = list("scan_input_axes", scan.scanned);
  scan.output_axes = list("scan_output_axes", scan.outputs);
  scan.input_directions = list("scan_input_directions", scan.scanned);
  scan.output_directions = list("scan_output_directions", scan.outputs);
  return scan;
}

Result<int64_t> scan_length(NodeContext& c, ScanNode& scan) {
  std::optional<int64_t> length;
  for (size_t i = 0; i < scan.scanned; ++i) {
    const TensorType& type = c.input_type(scan.states + i);
    KILN_ASSIGN_OR_RETURN(scan.input_axes[i], c.normalise_axis(scan.input_axes[i], type.rank()));
    const int64_t extent = type.shape.at(static_cast<size_t>(scan.input_axes[i]));
    if (length && *length != extent) {
      return c.fail("scanned inputs have the lengths " + std::to_string(*length) + " and " +
                    std::to_string(extent));
    }
    length = extent;
  }
  const auto nodes = static_cast<int64_t>(scan.body->nodes.size()) + 1;
  if (*length < 1 || *length > kMaxUnrolledNodes / nodes) {
    return c.unsupported("a scan of length " + std::to_string(*length) + " over a body of " +
                         std::to_string(nodes - 1) + " nodes is not unrolled");
  }
  return *length;
}

}  // namespace

Bindings import_scan(NodeContext& c, std::span<const Binding> inputs) {
  KILN_ASSIGN_OR_RETURN(ScanNode scan, read_scan(c));
  KILN_ASSIGN_OR_RETURN(const int64_t length, scan_length(c, scan));
  std::vector<Binding> states(inputs.begin(), inputs.begin() + static_cast<int64_t>(scan.states));
  std::vector<std::vector<ValueId>> rows(scan.outputs);
  for (int64_t round = 0; round < length; ++round) {
    std::vector<Binding> arguments = states;
    for (size_t i = 0; i < scan.scanned; ++i) {
      const int64_t axis = scan.input_axes[i];
      const int64_t position = scan.input_directions[i] ? length - 1 - round : round;
      const ValueId row = c.slice_axis(c.input(scan.states + i), axis, position, 1);
      arguments.push_back(Binding::tensor(c.squeeze(row, {axis})));
    }
    auto outputs = c.importer().inline_body(*scan.body, c.scope(), arguments);
    if (!outputs.ok()) {
      return std::move(outputs).error().context("body, round " + std::to_string(round));
    }
    for (size_t i = 0; i < scan.states; ++i) states[i] = (*outputs)[i];
    for (size_t i = 0; i < scan.outputs; ++i) {
      rows[i].push_back((*outputs)[scan.states + i].value);
    }
  }
  for (size_t i = 0; i < scan.outputs; ++i) {
    KILN_ASSIGN_OR_RETURN(const int64_t axis,
                          c.normalise_axis(scan.output_axes[i], c.rank(rows[i][0]) + 1));
    if (scan.output_directions[i]) std::reverse(rows[i].begin(), rows[i].end());
    for (ValueId& row : rows[i]) row = c.unsqueeze(row, {axis});
    states.push_back(Binding::tensor(c.concat(rows[i], axis)));
  }
  return states;
}

}  // namespace kiln::onnx_import
