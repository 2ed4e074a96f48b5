#include "builder/fuse/cycle.h"

#include <gtest/gtest.h>

namespace kiln::fuse {
namespace {

using ir::NodeId;

// x -> a -> b -> c -> d, and d reads `skipped` too.
struct Chain {
  explicit Chain(const std::string& skipped) {
    auto parsed =
        ir::parse_text("graph {\n  input %0 : f32[2] \"x\"\n" + line(1, "neg(%0)", "a") +
                       line(2, "abs(%1)", "b") + line(3, "neg(%2)", "c") +
                       line(4, "add(%3, " + skipped + ")", "d") + "  output %4 \"d\"\n}\n");
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    graph = *std::move(parsed);
  }

  bool closes(std::initializer_list<const char*> names) const {
    std::vector<NodeId> members;
    for (NodeId id : graph.topological_order()) {
      for (const char* name : names) {
        if (graph.node(id).name == name) members.push_back(id);
      }
    }
    EXPECT_EQ(members.size(), names.size());
    return makes_cycle(graph, members);
  }

  static std::string line(int id, const std::string& op, const std::string& name) {
    return "  %" + std::to_string(id) + " = " + op + " : f32[2] ; \"" + name + "\"\n";
  }
  ir::Graph graph;
};

TEST(MakesCycle, WhereAPathLeavesAndComesBack) {
  const Chain chain("%1");
  EXPECT_TRUE(chain.closes({"a", "d"}));
  EXPECT_TRUE(chain.closes({"a", "b", "d"}));
  EXPECT_TRUE(chain.closes({"a", "c"}));
  EXPECT_TRUE(chain.closes({"b", "d"}));
}

TEST(MakesCycle, NotWhereEveryPathStaysInside) {
  const Chain chain("%1");
  EXPECT_FALSE(chain.closes({"a"}));
  EXPECT_FALSE(chain.closes({"a", "b"}));
  EXPECT_FALSE(chain.closes({"c", "d"}));
  EXPECT_FALSE(chain.closes({"b", "c", "d"}));
  EXPECT_FALSE(chain.closes({"a", "b", "c", "d"}));
}

TEST(MakesCycle, NotOverAnInputThatBothRead) {
  EXPECT_FALSE(Chain("%0").closes({"c", "d"}));
  EXPECT_TRUE(Chain("%0").closes({"a", "d"}));
}

}  // namespace
}  // namespace kiln::fuse
