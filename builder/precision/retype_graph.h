// A graph of regions again, its f32 values stored as `Storage` says.
#pragma once
#include <map>
#include <utility>

#include "builder/ir/graph.h"
#include "builder/precision/storage.h"
#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::precision {

// Constants of one graph in other dtypes: each is converted once, however often the graph is
// retyped.
class ConvertedConstants {
 public:
  Result<SharedBytes> get(const ir::Graph& graph, ir::ValueId constant, DType dtype);

 private:
  std::map<std::pair<ir::ValueId, DType>, SharedBytes> bytes_;
};

// Regions keep their names; where a value is read in another dtype than it is stored in, a loop
// region casts it. REQUIRES: every node is a Region; storage is of this graph.
Result<ir::Graph> retype_graph(const ir::Graph& graph, const Storage& storage, DType narrow,
                               ConvertedConstants& constants);

}  // namespace kiln::precision
