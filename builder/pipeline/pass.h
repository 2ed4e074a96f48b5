// A pass is a name and a function. pipeline.cc holds the one ordered list of them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "builder/build_options.h"
#include "builder/ir/graph.h"
#include "formats/report/report.h"
#include "formats/result.h"

namespace kiln {

namespace precision {
class ConvertedConstants;
}  // namespace precision

// What measuring found about a region; builder/precision/narrow_search.h tells how.
struct RegionQuality {
  std::string keep;    // why it stays f32; "" if it may be narrow
  double damage = -1;  // what it takes off the outputs' cosine when it alone is narrow; -1: unknown
};

struct PassOptions {
  Precision precision = Precision::kFp32;
  bool io_fp16 = false;
  bool library_layouts = false;                  // store values as the GPU's libraries want them
  std::map<std::string, RegionQuality> quality;  // by name of the region's node
  std::vector<std::string> disabled;             // names of passes; an unknown one is an error
  // Passes that change the graph are numbered from 1, as in the names of dumps. After that many
  // only the required passes still run; -1: no limit.
  int64_t stop_after = -1;
  bool check_changed_flag = false;  // compare fingerprints round each pass; slow
  std::string label;                // the shape point's name: folder of its dumps
};

struct PrecisionDecision {
  std::string region;  // name of the region's node
  DType asked, realised;
  std::string reason;  // empty when the wish was granted
  double damage = -1;  // as in RegionQuality
};

struct PassTiming {
  std::string pass;
  double seconds = 0;   // over all its rounds
  int64_t changes = 0;  // rounds that changed the graph
};

// What passes read and what they tell besides the graph.
struct PassContext {
  PassOptions options;
  std::shared_ptr<precision::ConvertedConstants> constants;  // of other graphs of the model too
  std::vector<report::NearMiss> near_misses;  // nodes that a rule nearly fused, and why not
  std::vector<PrecisionDecision> precision;
  std::vector<PassTiming> timings;
  std::vector<std::string> notes;
};

struct Pass {
  // Passes in kClean are repeated, as a group, until none of them changes the graph.
  enum class Stage : uint8_t { kClean, kFuse, kPrecision };
  std::string_view name;  // kebab-case; the name of its file and its dumps
  Stage stage = Stage::kClean;
  bool required = false;  // what follows depends on it: cannot be disabled
  // True if it changed the graph. On an error the graph is not used any further.
  Result<bool> (*run)(ir::Graph&, PassContext&) = nullptr;
};

}  // namespace kiln
