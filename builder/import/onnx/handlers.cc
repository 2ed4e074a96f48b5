#include "builder/import/onnx/handlers.h"

#include <algorithm>

#include "builder/import/onnx/importer.h"
#include "builder/import/onnx/operator_list.h"

namespace kiln::onnx_import {
namespace {

using Family = std::span<const Handler> (*)();
constexpr Family kFamilies[] = {
    activation_handlers,    attention_handlers, contraction_handlers, data_dependent_handlers,
    einsum_handlers,        generator_handlers, indexing_handlers,    movement_handlers,
    normalization_handlers, padding_handlers,   pointwise_handlers,   pooling_handlers,
    quantization_handlers,  recurrent_handlers, reduction_handlers,   reshape_handlers,
    resize_handlers,        selection_handlers, signal_handlers,      slicing_handlers,
    vision_handlers,
};

}  // namespace

const Handler* find_handler(std::string_view domain, std::string_view op_type) {
  for (const Family family : kFamilies) {
    for (const Handler& handler : family()) {
      if (handler.op_type == op_type && handler.domain == domain) return &handler;
    }
  }
  return nullptr;
}

std::vector<std::string> handled_operators() {
  std::vector<std::string> names;
  for (const Family family : kFamilies) {
    for (const Handler& handler : family()) {
      const std::string domain(handler.domain);
      names.push_back((domain.empty() ? "" : domain + ".") + std::string(handler.op_type));
    }
  }
  for (const auto& family : {control_flow_handlers(), sequence_handlers()}) {
    for (const BindingHandler& handler : family) names.emplace_back(handler.op_type);
  }
  std::sort(names.begin(), names.end());
  return names;
}

const BindingHandler* find_binding_handler(std::string_view domain, std::string_view op_type) {
  if (!domain.empty()) return nullptr;
  for (const auto& family : {control_flow_handlers(), sequence_handlers()}) {
    for (const BindingHandler& handler : family) {
      if (handler.op_type == op_type) return &handler;
    }
  }
  return nullptr;
}

}  // namespace kiln::onnx_import
