#include "engine/plugin_host/check_library.h"

#include <gtest/gtest.h>

#include <functional>

namespace kiln {
namespace {

// A library that follows every rule, for a case to break one.
struct Tables {
  kiln_plugin_build build = {};
  kiln_plugin_run run = {};
  kiln_plugin plugin = {};
  const kiln_plugin* list[1] = {&plugin};
  kiln_plugin_library library = {};

  Tables() {
    build.struct_size = sizeof(build);
    build.infer = [](auto...) -> kiln_status { return 0; };
    run.struct_size = sizeof(run);
    run.create = [](auto...) -> kiln_status { return 0; };
    run.enqueue = [](auto...) -> kiln_status { return 0; };
    plugin.struct_size = sizeof(plugin);
    plugin.name = "com.example.P";
    plugin.version = "1";
    plugin.build = &build;
    plugin.run = &run;
    library.struct_size = sizeof(library);
    library.abi = KILN_PLUGIN_ABI;
    library.count = 1;
    library.plugins = list;
  }
};

std::string message_after(const std::function<void(Tables&)>& damage) {
  Tables tables;
  damage(tables);
  const auto checked = check_library(tables.library);
  return checked ? "" : checked.error().message;
}

TEST(CheckLibrary, TakesWhatFollowsTheRules) {
  EXPECT_EQ(message_after([](Tables&) {}), "");
  EXPECT_EQ(message_after([](Tables& t) { t.plugin.run = nullptr; }), "");
  // Compiled against a later, longer ABI header.
  EXPECT_EQ(message_after([](Tables& t) { t.build.struct_size += 64; }), "");
}

TEST(CheckLibrary, NamesTheRuleThatIsBroken) {
  const std::string plugin = "plugin 'com.example.P': ";
  const std::pair<std::function<void(Tables&)>, std::string> cases[] = {
      {[](Tables& t) { t.library.struct_size = 8; },
       "kiln_plugin_library has 8 bytes, expected at least 24"},
      {[](Tables& t) { t.library.abi = 2; }, "was made for plugin ABI 2, this library has 1 to 1"},
      {[](Tables& t) { t.library.plugins = nullptr; }, "its list of plugins is null"},
      {[](Tables& t) { t.list[0] = nullptr; }, "a plugin is null"},
      {[](Tables& t) { t.plugin.struct_size = 4; },
       "kiln_plugin has 4 bytes, expected at least 40"},
      {[](Tables& t) { t.plugin.name = ""; }, "a plugin has no name or version"},
      {[](Tables& t) { t.plugin.version = nullptr; }, "a plugin has no name or version"},
      {[](Tables& t) { t.plugin.build = nullptr; }, plugin + "has no build half"},
      {[](Tables& t) { t.build.struct_size = 16; },
       plugin + "kiln_plugin_build has 16 bytes, expected at least 40"},
      {[](Tables& t) { t.build.infer = nullptr; }, plugin + "kiln_plugin_build.infer is null"},
      {[](Tables& t) { t.build.candidate_count = [](auto...) -> uint32_t { return 1; }; },
       plugin + "kiln_plugin_build.candidate is null, candidate_count is not"},
      {[](Tables& t) { t.run.struct_size = 16; },
       plugin + "kiln_plugin_run has 16 bytes, expected at least 40"},
      {[](Tables& t) { t.run.enqueue = nullptr; },
       plugin + "kiln_plugin_run.create or .enqueue is null"},
  };
  for (const auto& [damage, message] : cases) EXPECT_EQ(message_after(damage), message);
}

}  // namespace
}  // namespace kiln
