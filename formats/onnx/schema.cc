#include "formats/onnx/schema.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <limits>

#include "formats/onnx/decode_graph.h"
#include "formats/onnx/find_op_schema.h"

namespace kiln::onnx {
namespace {

using ::onnx::OpSchema;

std::vector<ParameterInfo> decode_parameters(const std::vector<OpSchema::FormalParameter>& formal) {
  std::vector<ParameterInfo> parameters;
  parameters.reserve(formal.size());
  for (const auto& parameter : formal) {
    parameters.push_back({parameter.GetName(), parameter.GetOption() == OpSchema::Optional,
                          parameter.GetOption() == OpSchema::Variadic});
  }
  return parameters;
}

Result<AttributeInfo> decode_info(const OpSchema::Attribute& attribute) {
  AttributeInfo info{attribute.name, decode_kind(attribute.type), attribute.required, {}};
  if (attribute.default_value.has_name()) {
    ::onnx::AttributeProto copy = attribute.default_value;
    ExternalData none({});
    KILN_ASSIGN_OR_RETURN(info.default_value, decode_attribute(copy, none));
  }
  return info;
}

Result<SchemaInfo> decode_schema(const OpSchema& schema) {
  SchemaInfo info;
  info.since_version = schema.since_version();
  info.deprecated = schema.deprecated();
  info.has_function_body = schema.HasFunction() || schema.HasContextDependentFunction();
  info.min_inputs = schema.min_input();
  info.max_inputs = schema.max_input();
  info.min_outputs = schema.min_output();
  info.max_outputs = schema.max_output();
  info.inputs = decode_parameters(schema.inputs());
  info.outputs = decode_parameters(schema.outputs());
  for (const auto& [name, attribute] : schema.attributes()) {
    KILN_ASSIGN_OR_RETURN(AttributeInfo decoded, decode_info(attribute));
    info.attributes.push_back(std::move(decoded));
  }
  // ONNX keeps them in a hash map; messages and iteration should not depend on its order.
  std::sort(info.attributes.begin(), info.attributes.end(),
            [](const AttributeInfo& a, const AttributeInfo& b) { return a.name < b.name; });
  return info;
}

}  // namespace

int64_t newest_ir_version() { return ::onnx::Version::IR_VERSION; }

std::optional<int64_t> newest_opset(const std::string& domain) {
  const auto& versions = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto found = versions.find(domain);
  if (found == versions.end()) return std::nullopt;
  return found->second.second;
}

Result<const OpSchema*> find_op_schema(const std::string& op_type, const std::string& domain,
                                       int64_t opset) {
  const std::string shown = domain.empty() ? "ai.onnx" : domain;
  if (!newest_opset(domain)) {
    return Error{ErrorCode::kUnsupported, "domain '" + shown + "' is not one of ONNX's"};
  }
  const auto version =
      static_cast<int>(std::clamp<int64_t>(opset, 0, std::numeric_limits<int>::max()));
  if (const auto* schema = ::onnx::OpSchemaRegistry::Schema(op_type, version, domain)) {
    return schema;
  }
  const auto* newer = ::onnx::OpSchemaRegistry::Schema(op_type, domain);
  if (!newer) {
    return Error{ErrorCode::kUnsupported,
                 "domain '" + shown + "' has no operator '" + op_type + "'"};
  }
  return Error{ErrorCode::kUnsupported, "operator '" + op_type + "' is not in opset " +
                                            std::to_string(opset) + " of domain '" + shown + "'"};
}

Result<SchemaInfo> find_schema(const std::string& op_type, const std::string& domain,
                               int64_t opset) try {
  KILN_ASSIGN_OR_RETURN(const OpSchema* schema, find_op_schema(op_type, domain, opset));
  return decode_schema(*schema);
} catch (const std::exception& e) {
  return Error{ErrorCode::kInternal, std::string("onnx's schema registry failed: ") + e.what()};
}

}  // namespace kiln::onnx
