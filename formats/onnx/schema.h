// Questions to ONNX's own operator schemas: signatures, attribute defaults, function bodies.
// All functions are thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "formats/result.h"

namespace kiln::onnx {

struct ParameterInfo {
  std::string name;
  bool optional = false;
  bool variadic = false;  // only the last may be; it stands for all further ones
};

struct AttributeInfo {
  std::string name;
  AttributeKind kind = AttributeKind::kNone;  // a sparse tensor's kind is kTensor
  bool required = false;
  std::optional<Attribute> default_value;
};

struct SchemaInfo {
  int64_t since_version = 0;  // the operator set that brought this version of the operator
  bool deprecated = false;
  bool has_function_body = false;
  int64_t min_inputs = 0, max_inputs = 0;    // INT32_MAX when variadic
  int64_t min_outputs = 0, max_outputs = 0;  // likewise
  std::vector<ParameterInfo> inputs, outputs;
  std::vector<AttributeInfo> attributes;
};

// The newest version of the file format (ModelProto.ir_version) that ONNX's library knows.
int64_t newest_ir_version();
// The newest operator set of a domain that ONNX's library knows; nullopt for other domains.
std::optional<int64_t> newest_opset(const std::string& domain);

// The schema that holds for an operator in an operator set, domain "" being ONNX's own.
// Errors: kUnsupported, saying whether the domain, the operator or its version is unknown.
Result<SchemaInfo> find_schema(const std::string& op_type, const std::string& domain,
                               int64_t opset);

// ONNX's definition of a composite operator as a function over simpler ones, or nullopt when it
// has none. Some bodies depend on attributes and input types: input_types has one entry per node
// input, nullopt where unknown. The result's defaults include the schema's, so that attribute
// references resolve as for a model's function.
// Errors: those of find_schema; kUnsupported when ONNX fails to build the body.
Result<std::optional<Function>> function_body(
    const Node& node, const std::map<std::string, int64_t>& opset_imports,
    std::span<const std::optional<ValueInfo>> input_types);

}  // namespace kiln::onnx
