// A graph after all passes, in f16, with or without the layouts that GPU libraries want.
#pragma once
#include <gtest/gtest.h>

#include "builder/pipeline/pass_driver.h"
#include "builder/pipeline/pipeline.h"

namespace kiln::test {

inline ir::Graph narrowed(const ir::Graph& imported, bool library_layouts) {
  ir::Graph graph = imported;
  PassContext context;
  context.options.check_changed_flag = true;
  context.options.precision = Precision::kFp16;
  context.options.library_layouts = library_layouts;
  const auto run = run_passes(graph, default_pipeline(), context);
  EXPECT_TRUE(run.ok()) << run.error().message;
  return graph;
}

}  // namespace kiln::test
