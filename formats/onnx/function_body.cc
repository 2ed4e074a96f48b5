#include <onnx/defs/schema.h>

#include <limits>

#include "formats/onnx/decode_graph.h"
#include "formats/onnx/encode_node.h"
#include "formats/onnx/find_op_schema.h"
#include "formats/onnx/schema.h"

namespace kiln::onnx {
namespace {

using ::onnx::FunctionProto;
using ::onnx::OpSchema;

// The newest of the versions that is not newer than the operator set.
std::optional<int> newest_up_to(const std::vector<int>& rising, int opset) {
  std::optional<int> newest;
  for (int version : rising) {
    if (version <= opset) newest = version;
  }
  return newest;
}

// A body is written for one operator set, and stays as it is when newer sets change the operators
// in it: its own version says what its nodes mean, not the model's.
void set_version(FunctionProto& body, const OpSchema& schema, int version) {
  for (auto& import : *body.mutable_opset_import()) {
    if (import.domain() == schema.domain()) {
      import.set_version(version);
      return;
    }
  }
  auto* import = body.add_opset_import();
  import->set_domain(schema.domain());
  import->set_version(version);
}

std::optional<FunctionProto> stored_body(const OpSchema& schema, int opset) {
  const auto version = newest_up_to(schema.function_opset_versions(), opset);
  if (!version) return std::nullopt;
  const FunctionProto* stored = schema.GetFunction(opset);
  if (!stored) return std::nullopt;
  FunctionProto body = *stored;
  set_version(body, schema, *version);
  return body;
}

Result<std::optional<FunctionProto>> built_body(
    const OpSchema& schema, int opset, const Node& node,
    std::span<const std::optional<ValueInfo>> input_types) {
  const auto version = newest_up_to(schema.context_dependent_function_opset_versions(), opset);
  if (!version) return std::optional<FunctionProto>();
  KILN_ASSIGN_OR_RETURN(const ::onnx::NodeProto proto, encode_node(node));
  std::vector<::onnx::TypeProto> types;
  for (const auto& type : input_types) {
    types.push_back(type ? encode_type(*type) : ::onnx::TypeProto());
  }
  const ::onnx::FunctionBodyBuildContextImpl context(proto, types);
  FunctionProto body;
  if (!schema.BuildContextDependentFunction(context, body, opset)) {
    return std::optional<FunctionProto>();
  }
  if (body.output_size() == 0) schema.BuildFunction(body);  // most builders have done so
  set_version(body, schema, *version);
  return std::optional<FunctionProto>(std::move(body));
}

Result<Function> decode_body(FunctionProto body, const OpSchema& schema) {
  ExternalData none({});
  // The schema knows all attributes with their defaults; bodies declare them unevenly.
  body.clear_attribute();
  body.clear_attribute_proto();
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.has_name()) {
      *body.add_attribute_proto() = attribute.default_value;
    } else {
      body.add_attribute(name);
    }
  }
  return decode_function(body, none);
}

}  // namespace

Result<std::optional<Function>> function_body(
    const Node& node, const std::map<std::string, int64_t>& opset_imports,
    std::span<const std::optional<ValueInfo>> input_types) try {
  const auto imported = opset_imports.find(node.domain);
  if (imported == opset_imports.end()) {
    return Error{ErrorCode::kInvalidArgument, "domain '" + node.domain + "' is not imported"};
  }
  KILN_ASSIGN_OR_RETURN(const OpSchema* schema,
                        find_op_schema(node.op_type, node.domain, imported->second));
  const auto opset =
      static_cast<int>(std::min<int64_t>(imported->second, std::numeric_limits<int>::max()));
  std::optional<FunctionProto> body = stored_body(*schema, opset);
  if (!body) {
    KILN_ASSIGN_OR_RETURN(body, built_body(*schema, opset, node, input_types));
  }
  if (!body) return std::optional<Function>();
  auto decoded = decode_body(*std::move(body), *schema);
  if (!decoded.ok()) {
    return std::move(decoded).error().context("the function body of " + describe(node));
  }
  // A body may use other domains than its operator's without saying at which version.
  decoded->opset_imports.insert(opset_imports.begin(), opset_imports.end());
  return std::optional<Function>(*std::move(decoded));
} catch (const std::exception& e) {
  return Error{ErrorCode::kUnsupported,
               "onnx cannot build the function body of " + describe(node) + ": " + e.what()};
}

}  // namespace kiln::onnx
