// Tensors as the plugin ABI describes them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/result.h"
#include "formats/tensor_type.h"
#include "plugins/plugin_abi.h"

namespace kiln {

// kUnsupported above KILN_PLUGIN_MAX_RANK. Data is null.
Result<std::vector<kiln_tensor>> plugin_tensors(std::span<const TensorType> types);
// What a plugin filled in: dtype, rank and extents are checked.
Result<TensorType> type_of(const kiln_tensor& tensor);

// The host side of a call: collects what the plugin reports.
class PluginMessages {
 public:
  PluginMessages();
  PluginMessages(const PluginMessages&) = delete;
  PluginMessages& operator=(const PluginMessages&) = delete;

  const kiln_host* host() const { return &host_; }
  // An error made of status and messages; `what` names the call.
  Error error(const std::string& what, kiln_status status) const;

 private:
  static void report(void* self, const char* message);

  std::string text_;
  kiln_host host_;
};

}  // namespace kiln
