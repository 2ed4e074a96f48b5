#include "engine/plugin_host/plugin_tensors.h"

#include <algorithm>

namespace kiln {

Result<std::vector<kiln_tensor>> plugin_tensors(std::span<const TensorType> types) {
  std::vector<kiln_tensor> tensors;
  for (const TensorType& type : types) {
    if (type.shape.size() > KILN_PLUGIN_MAX_RANK) {
      return Error{ErrorCode::kUnsupported, "plugins take tensors of rank " +
                                                std::to_string(KILN_PLUGIN_MAX_RANK) +
                                                " at most, found " + to_string(type)};
    }
    kiln_tensor& tensor = tensors.emplace_back(kiln_tensor{});
    tensor.dtype = static_cast<uint32_t>(type.dtype);
    tensor.rank = static_cast<uint32_t>(type.shape.size());
    std::copy(type.shape.begin(), type.shape.end(), tensor.dims);
  }
  return tensors;
}

Result<TensorType> type_of(const kiln_tensor& tensor) {
  if (tensor.dtype >= kDTypeCount || tensor.rank > KILN_PLUGIN_MAX_RANK) {
    return Error{ErrorCode::kCorruptData, "dtype is " + std::to_string(tensor.dtype) +
                                              " and rank " + std::to_string(tensor.rank) +
                                              ", expected less than " +
                                              std::to_string(kDTypeCount) + " and at most " +
                                              std::to_string(KILN_PLUGIN_MAX_RANK)};
  }
  TensorType type{static_cast<DType>(tensor.dtype), {tensor.dims, tensor.dims + tensor.rank}};
  if (!checked_element_count(type.shape)) {
    return Error{ErrorCode::kCorruptData,
                 "shape " + to_string(type.shape) + " has a negative extent or too many elements"};
  }
  return type;
}

PluginMessages::PluginMessages()
    : host_{.struct_size = sizeof(kiln_host),
            .abi = KILN_PLUGIN_ABI,
            .self = this,
            .report = &PluginMessages::report} {}

void PluginMessages::report(void* self, const char* message) {
  if (self == nullptr || message == nullptr) return;
  std::string& text = static_cast<PluginMessages*>(self)->text_;
  if (!text.empty()) text += "; ";
  text += message;
}

Error PluginMessages::error(const std::string& what, kiln_status status) const {
  return {ErrorCode::kInvalidArgument, what + ": status " + std::to_string(status) + ", " +
                                           (text_.empty() ? "without a message" : text_)};
}

}  // namespace kiln
