// Nodes of custom domains that a loaded plugin implements.
#pragma once
#include <vector>

#include "builder/import/onnx/node_context.h"
#include "engine/plugin_library.h"

namespace kiln::onnx_import {

// The plugin called "domain.op_type", of the version that the node's attribute plugin_version asks
// for; null if none is loaded.
const Plugin* find_node_plugin(std::span<const Plugin> plugins, const onnx::Node& node);

// A PluginCall whose output types the plugin infers; attributes become its JSON object.
Outputs import_plugin_node(NodeContext& c, const Plugin& plugin);

}  // namespace kiln::onnx_import
