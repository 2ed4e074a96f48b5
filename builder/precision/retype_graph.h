// A graph of regions again, its f32 values stored as `Storage` says.
#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "builder/ir/graph.h"
#include "builder/precision/storage.h"
#include "formats/result.h"
#include "formats/shared_bytes.h"

namespace kiln::precision {

// Constants in other dtypes: each is converted once, however often a graph is retyped, and however
// many graphs share it, as those of a model's shape points do.
class ConvertedConstants {
 public:
  Result<SharedBytes> get(const ir::Graph& graph, ir::ValueId constant, DType dtype);

 private:
  struct Converted {
    std::weak_ptr<const void> source;  // whose address is another's once it is gone
    SharedBytes bytes;
  };
  using Key = std::tuple<const std::byte*, size_t, DType, DType>;  // from, to
  std::map<Key, Converted> converted_;
};

// Regions keep their names; where a value is read in another dtype than it is stored in, a loop
// region casts it. REQUIRES: every node is a Region; storage is of this graph.
Result<ir::Graph> retype_graph(const ir::Graph& graph, const Storage& storage, DType narrow,
                               ConvertedConstants& constants);

}  // namespace kiln::precision
