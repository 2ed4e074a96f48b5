#include <dlfcn.h>

#include <cstddef>

#include "engine/plugin_library.h"
#include "plugins/plugin_abi.h"

namespace kiln {
namespace {

struct Library {
  std::shared_ptr<const void> handle;
  const kiln_plugin_library* abi = nullptr;
};

// Whether a struct that says it has `size` bytes holds the named field.
#define KILN_HAS_FIELD(size, type, field) ((size) >= offsetof(type, field) + sizeof(type::field))

Error broken(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

Result<Library> open_library(const std::filesystem::path& path) {
  // A name without a slash would be searched for in the system's folders.
  const std::filesystem::path explicit_path = std::filesystem::absolute(path);
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

Result<> check_library(const kiln_plugin_library& library) {
  if (!KILN_HAS_FIELD(library.struct_size, kiln_plugin_library, plugins)) {
    return broken("kiln_plugin_library has " + std::to_string(library.struct_size) +
                  " bytes, expected at least " + std::to_string(sizeof(kiln_plugin_library)));
  }
  if (library.abi == 0 || library.abi > KILN_PLUGIN_ABI) {
    return Error{ErrorCode::kVersionMismatch,
                 "was made for plugin ABI " + std::to_string(library.abi) +
                     ", this library has 1 to " + std::to_string(KILN_PLUGIN_ABI)};
  }
  if (library.count > 0 && library.plugins == nullptr) return broken("its list of plugins is null");
  return Ok();
}

Result<> check_build_half(const kiln_plugin_build& build) {
  if (!KILN_HAS_FIELD(build.struct_size, kiln_plugin_build, rows_independent)) {
    return broken("kiln_plugin_build has " + std::to_string(build.struct_size) +
                  " bytes, expected at least " + std::to_string(sizeof(kiln_plugin_build)));
  }
  if (build.infer == nullptr) return broken("kiln_plugin_build.infer is null");
  if (build.candidate_count != nullptr && build.candidate == nullptr) {
    return broken("kiln_plugin_build.candidate is null, candidate_count is not");
  }
  return Ok();
}

Result<> check_run_half(const kiln_plugin_run& run) {
  if (!KILN_HAS_FIELD(run.struct_size, kiln_plugin_run, enqueue)) {
    return broken("kiln_plugin_run has " + std::to_string(run.struct_size) +
                  " bytes, expected at least " + std::to_string(sizeof(kiln_plugin_run)));
  }
  if (run.create == nullptr || run.enqueue == nullptr) {
    return broken("kiln_plugin_run.create or .enqueue is null");
  }
  return Ok();
}

Result<> check_plugin(const kiln_plugin* plugin) {
  if (plugin == nullptr) return broken("a plugin is null");
  if (!KILN_HAS_FIELD(plugin->struct_size, kiln_plugin, run)) {
    return broken("kiln_plugin has " + std::to_string(plugin->struct_size) +
                  " bytes, expected at least " + std::to_string(sizeof(kiln_plugin)));
  }
  if (plugin->name == nullptr || *plugin->name == '\0' || plugin->version == nullptr) {
    return broken("a plugin has no name or version");
  }
  const std::string name = "plugin '" + std::string(plugin->name) + "'";
  if (plugin->build == nullptr) return broken(name + ": has no build half");
  auto checked = check_build_half(*plugin->build);
  if (checked && plugin->run != nullptr) checked = check_run_half(*plugin->run);
  if (!checked) return std::move(checked).error().context(name);
  return Ok();
}

#undef KILN_HAS_FIELD

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
      checked = check_plugin(abi);
      if (!checked) break;
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
