// End-to-end verification: the finished engine against the imported graph, run node by node.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "builder/tactics/accuracy.h"
#include "builder/verify/reference.h"
#include "engine/engine.h"
#include "formats/report/report.h"

namespace kiln {

// What "right" means for a whole engine: elementwise by accuracy_for() of the output's dtype, or,
// where narrow floats are at work, the cosine of each batch row of each float output.
struct EngineAccuracy {
  double min_cosine = 0;  // 0: elementwise
};

// One shape point's verdict; `inputs` is what was wrong, for locating the fault.
struct PointVerdict {
  std::vector<report::Verification> checks;
  std::vector<HostTensor> failing_inputs;  // empty: all passed
};

// The imported graph for a shape point, untouched by any pass.
using ImportFn = std::function<Result<ir::Graph>(const ShapePoint&)>;

class EngineVerifier {
 public:
  EngineVerifier(const Engine& engine, ImportFn import, EngineAccuracy accuracy,
                 ReferenceOptions reference = {})
      : engine_(engine), import_(std::move(import)), accuracy_(accuracy), reference_(reference) {}

  // Where rows are independent (`batch_padding` in the engine's info): rows that the reference ran
  // alone, in several orders and in the company of NaN, must come out alike. Otherwise the
  // reference runs the whole point.
  Result<PointVerdict> verify(const ShapePoint& point);

  // The user's own inputs: all rows of `tensors`, which has the extents of some batch.
  Result<PointVerdict> verify_data(const ShapePoint& point, const std::string& name,
                                   std::span<const HostTensor> tensors);

 private:
  struct Rows;  // reference results of single rows
  Result<std::shared_ptr<const Rows>> reference_rows(const ShapePoint& point);
  Result<PointVerdict> verify_rows(const ShapePoint& point);
  Result<PointVerdict> verify_whole(const ShapePoint& point);

  const Engine& engine_;
  ImportFn import_;
  EngineAccuracy accuracy_;
  ReferenceOptions reference_;
  std::map<std::string, std::shared_ptr<const Rows>> rows_;  // by shape set: buckets share them
};

// The same model at one row.
ShapePoint single_row(const ShapePoint& point);

}  // namespace kiln
