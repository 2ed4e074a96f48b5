// Any bytes: a model or an error, and for a model's nodes a function body or an error.
#include "formats/onnx/read_model.h"
#include "formats/onnx/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto model = kiln::onnx::parse_model({reinterpret_cast<const std::byte*>(data), size});
  if (!model.ok()) return 0;
  for (const auto& node : model->graph.nodes) {
    // Unknown types, then one known type for all: most bodies ask for the first input's.
    kiln::onnx::ValueInfo known;
    known.dtype = kiln::DType::kF32;
    for (const std::optional<kiln::onnx::ValueInfo>& type : {std::optional(known), {}}) {
      const std::vector<std::optional<kiln::onnx::ValueInfo>> types(node.inputs.size(), type);
      (void)kiln::onnx::function_body(node, model->opset_imports, types);
    }
  }
  return 0;
}
