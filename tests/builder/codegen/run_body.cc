#include "tests/builder/codegen/run_body.h"

#include <cmath>
#include <map>

#include "builder/codegen/lower_loop.h"
#include "engine/host/dtype_conversion.h"
#include "engine/host_kernels.h"

namespace kiln::codegen {
namespace {

// Poison, so that an element that nobody writes is seen.
Bytes fresh(const TensorType& type) {
  return Bytes(static_cast<size_t>(type.bytes()), std::byte{0xA5});
}

std::vector<const void*> pointers(const std::vector<Bytes>& buffers) {
  std::vector<const void*> result;
  for (const Bytes& buffer : buffers) result.push_back(buffer.data());
  return result;
}

Result<std::vector<Bytes>> run_operation(const Operation& operation,
                                         const std::vector<TensorType>& in,
                                         const std::vector<const void*>& inputs,
                                         const std::vector<TensorType>& out) {
  std::vector<Bytes> results;
  for (const TensorType& type : out) results.push_back(fresh(type));
  std::vector<void*> outputs;
  for (Bytes& result : results) outputs.push_back(result.data());
  KILN_RETURN_IF_ERROR(run_host_operation(operation, in, inputs, out, outputs));
  return results;
}

}  // namespace

Bytes random_bytes(const TensorType& type, int low, int high, std::mt19937& random) {
  std::vector<double> values(static_cast<size_t>(type.elements()));
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> integer(low, high);
  for (double& v : values) {
    if (is_float(type.dtype))
      v = normal(random);
    else
      v = type.dtype == DType::kBool ? static_cast<double>(random() % 2) : integer(random);
  }
  Bytes bytes(static_cast<size_t>(type.bytes()));
  host::convert(DType::kF64, values.data(), type.dtype, bytes.data(), type.elements());
  return bytes;
}

Result<std::vector<Bytes>> run_node_by_node(const ir::Graph& body,
                                            const std::vector<Bytes>& inputs) {
  std::map<uint32_t, Bytes> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[ir::index_of(body.inputs()[i])] = inputs[i];
  const auto bytes_of = [&](ir::ValueId id) -> const void* {
    const ir::Value& value = body.value(id);
    return value.constant ? static_cast<const void*>(value.constant->data())
                          : values.at(ir::index_of(id)).data();
  };
  for (const ir::NodeId id : body.topological_order()) {
    const ir::Node& node = body.node(id);
    std::vector<TensorType> in, out;
    std::vector<const void*> data;
    for (const ir::ValueId input : node.inputs) {
      in.push_back(body.type(input));
      data.push_back(bytes_of(input));
    }
    for (const ir::ValueId output : node.outputs) out.push_back(body.type(output));
    auto results = run_operation(ir::operation_of(node.op).value(), in, data, out);
    if (!results.ok()) return std::move(results).error().context(node.name);
    for (size_t o = 0; o < out.size(); ++o) {
      values[ir::index_of(node.outputs[o])] = std::move((*results)[o]);
    }
  }
  std::vector<Bytes> outputs;
  for (const ir::ValueId id : body.outputs()) {
    const auto* data = static_cast<const std::byte*>(bytes_of(id));
    outputs.emplace_back(data, data + body.type(id).bytes());
  }
  return outputs;
}

Result<std::vector<Bytes>> run_lowered(const ir::Graph& body, const std::vector<Bytes>& inputs) {
  KILN_ASSIGN_OR_RETURN(const loop::LoopKernel kernel, lower_to_loop(body));
  std::vector<TensorType> in, out;
  for (const ir::ValueId id : body.inputs()) in.push_back(body.type(id));
  for (const ir::ValueId id : body.outputs()) out.push_back(body.type(id));
  const Operation operation = Operation{"loop", {}}.set("kernel", loop::encode(kernel));
  return run_operation(operation, in, pointers(inputs), out);
}

std::vector<double> values_of(DType dtype, const Bytes& bytes) {
  const size_t count = bytes.size() * 8 / static_cast<size_t>(bits_of(dtype));
  std::vector<double> values(count);
  host::convert(dtype, bytes.data(), DType::kF64, values.data(), static_cast<int64_t>(count));
  return values;
}

std::string difference(DType dtype, const Bytes& got, const Bytes& want, double tolerance) {
  if (got.size() != want.size()) return "sizes differ";
  const std::vector<double> a = values_of(dtype, got), b = values_of(dtype, want);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double allowed = is_float(dtype) ? tolerance * std::max(1.0, std::fabs(b[i])) : 0;
    if (std::fabs(a[i] - b[i]) <= allowed) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
           std::to_string(b[i]);
  }
  return "";
}

}  // namespace kiln::codegen
