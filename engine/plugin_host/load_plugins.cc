#include <dlfcn.h>

#include "engine/plugin_host/check_library.h"
#include "engine/plugin_library.h"
#include "plugins/plugin_abi.h"

namespace kiln {
namespace {

struct Library {
  std::shared_ptr<const void> handle;
  const kiln_plugin_library* abi = nullptr;
};

Error broken(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

Result<Library> open_library(const std::filesystem::path& path) {
  // A name without a slash would be searched for in the system's folders.
  std::error_code no_folder;
  const std::filesystem::path explicit_path = std::filesystem::absolute(path, no_folder);
  if (no_folder) return Error{ErrorCode::kIo, no_folder.message()};
  void* opened = dlopen(explicit_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Error{ErrorCode::kIo, dlerror()};
  Library library;
  library.handle = std::shared_ptr<const void>(
      opened, [](const void* handle) { dlclose(const_cast<void*>(handle)); });
  const auto query =
      reinterpret_cast<kiln_plugin_query_fn>(dlsym(opened, KILN_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr) return broken("does not export " KILN_PLUGIN_QUERY_SYMBOL);
  library.abi = query(KILN_PLUGIN_ABI);
  if (library.abi == nullptr) {
    return Error{ErrorCode::kVersionMismatch,
                 "needs a newer plugin ABI than this library's " + std::to_string(KILN_PLUGIN_ABI)};
  }
  return library;
}

}  // namespace

Result<std::vector<Plugin>> load_plugins(std::span<const std::filesystem::path> libraries) {
  std::vector<Plugin> plugins;
  for (const std::filesystem::path& path : libraries) {
    const std::string where = "plugin library '" + path.string() + "'";
    auto library = open_library(path);
    if (!library) return std::move(library).error().context(where);
    auto checked = check_library(*library->abi);
    for (uint32_t i = 0; checked && i < library->abi->count; ++i) {
      const kiln_plugin* abi = library->abi->plugins[i];
      Plugin plugin;
      plugin.library_ = library->handle;
      plugin.abi_ = abi;
      plugin.name_ = abi->name;
      plugin.version_ = abi->version;
      if (find_plugin(plugins, plugin.name_, plugin.version_) != nullptr) {
        checked = Error{ErrorCode::kInvalidArgument, "plugin '" + plugin.name_ + "' version '" +
                                                         plugin.version_ + "' is loaded already"};
        break;
      }
      plugins.push_back(std::move(plugin));
    }
    if (!checked) return std::move(checked).error().context(where);
  }
  return plugins;
}

const Plugin* find_plugin(std::span<const Plugin> plugins, std::string_view name,
                          std::string_view version) {
  for (const Plugin& plugin : plugins) {
    if (plugin.name() == name && (version.empty() || plugin.version() == version)) return &plugin;
  }
  return nullptr;
}

}  // namespace kiln
