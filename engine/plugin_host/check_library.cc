#include "engine/plugin_host/check_library.h"

#include <cstddef>
#include <string>

namespace kiln {
namespace {

// Whether a struct that says it has `size` bytes holds the named field.
#define KILN_HAS_FIELD(size, type, field) ((size) >= offsetof(type, field) + sizeof(type::field))

Error broken(std::string message) { return {ErrorCode::kCorruptData, std::move(message)}; }

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
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer's own size is meant
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

}  // namespace

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
  for (uint32_t i = 0; i < library.count; ++i) {
    KILN_RETURN_IF_ERROR(check_plugin(library.plugins[i]));
  }
  return Ok();
}

#undef KILN_HAS_FIELD

}  // namespace kiln
