// Plugins: operations from shared libraries (plugins/plugin_abi.h), as the builder and the runtime
// see them. Only libraries named by the caller are loaded. All methods of const objects may be
// called from many threads at once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.h"
#include "formats/result.h"
#include "formats/tensor_type.h"

struct kiln_plugin;

namespace kiln {

// A CUDA kernel that a plugin offers; the builder compiles and times it. Arguments are the inputs'
// pointers, then the outputs', then the workspace's.
struct PluginKernel {
  std::string name, source, entry;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  uint64_t workspace_bytes = 0;
  bool programmatic_launch = false;
};

// A plugin's run half, made ready for one node's attributes and types. Cheap to copy.
class PluginInstance {
 public:
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Buffers are dense; the workspace is 64-byte aligned. Errors carry the plugin's own message.
  Result<> run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace,
               Stream stream = {}) const;

 private:
  friend class Plugin;
  struct State;
  std::shared_ptr<const State> state_;
  uint64_t workspace_bytes_ = 0;
};

// One plugin of a loaded library; a copy keeps the library loaded.
class Plugin {
 public:
  const std::string& name() const { return name_; }        // "com.example.Scale"
  const std::string& version() const { return version_; }  // "1"
  bool has_host_code() const;

  // Output types for these inputs. `attributes` is the node's JSON object.
  Result<std::vector<TensorType>> infer(std::string_view attributes,
                                        std::span<const TensorType> inputs,
                                        size_t output_count) const;
  // Kernels for a compute capability (90 = 9.0); none is not an error.
  Result<std::vector<PluginKernel>> kernels(std::string_view attributes,
                                            std::span<const TensorType> inputs,
                                            std::span<const TensorType> outputs,
                                            uint32_t compute_capability) const;
  // Row i of the outputs depends on row i of the inputs only, along axis 0.
  bool rows_independent(std::string_view attributes) const;
  // kUnsupported if the plugin has no host code.
  Result<PluginInstance> instantiate(std::string_view attributes,
                                     std::span<const TensorType> inputs,
                                     std::span<const TensorType> outputs) const;

 private:
  friend Result<std::vector<Plugin>> load_plugins(std::span<const std::filesystem::path>);
  std::shared_ptr<const void> library_;
  const kiln_plugin* abi_ = nullptr;
  std::string name_, version_;
};

// Loads the libraries, in order. kIo: the library cannot be loaded. kVersionMismatch: made for
// another plugin ABI. kCorruptData: its tables break the ABI's rules. kInvalidArgument: two plugins
// of one name and version. Loading runs the library's code: it deserves an executable's trust.
Result<std::vector<Plugin>> load_plugins(std::span<const std::filesystem::path> libraries);

// The plugin of that name and version ("" for any); null if there is none.
const Plugin* find_plugin(std::span<const Plugin> plugins, std::string_view name,
                          std::string_view version = {});

}  // namespace kiln
