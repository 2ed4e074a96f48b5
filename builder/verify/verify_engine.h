// End-to-end verification: the finished engine against the imported graph, run node by node.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "builder/verify/check_output.h"
#include "builder/verify/reference.h"
#include "builder/verify/user_data.h"
#include "engine/engine.h"
#include "formats/report/report.h"

namespace kiln {

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

  // The user's own inputs, at most `most_rows` of them, in requests that fill the point: rows are
  // repeated where there are too few. Errors as user_requests.
  Result<PointVerdict> verify_data(const ShapePoint& point, const UserData& data,
                                   int64_t most_rows);

 private:
  struct Rows;  // reference results of single rows
  struct RowOrder;
  bool by_rows(const ShapePoint& point) const;
  Result<const ShapePointInfo*> find_point(const ShapePoint& point) const;
  static std::vector<std::vector<HostTensor>> made_up_rows(const ir::Graph& graph,
                                                           const ShapePoint& single);
  // The reference's answers to rows of a name; made up where none are given. Answered once for all
  // points of a shape set.
  Result<std::shared_ptr<const Rows>> answered_rows(const ShapePoint& point,
                                                    const std::string& name,
                                                    std::span<const std::vector<HostTensor>> given);
  Result<std::vector<HostTensor>> fill_point(const ShapePoint& point, const Rows& rows,
                                             const RowOrder& order) const;
  Result<> check_rows(const ShapePoint& point, const Rows& rows, const RowOrder& order,
                      PointVerdict& verdict) const;
  Result<> check_whole(const ShapePoint& point, const ir::Graph& graph, const std::string& name,
                       std::span<const HostTensor> tensors, PointVerdict& verdict) const;
  Result<PointVerdict> verify_rows(const ShapePoint& point);
  Result<PointVerdict> verify_whole(const ShapePoint& point);

  const Engine& engine_;
  ImportFn import_;
  EngineAccuracy accuracy_;
  ReferenceOptions reference_;
  // By shape set and name: buckets share them.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Rows>> rows_;
};

}  // namespace kiln
