// BuildState's verification step: the engine against the reference at every point, on values that
// the builder makes up and on the user's; a region at fault gets another tactic.
#include <algorithm>
#include <optional>
#include <set>

#include "builder/driver/build_state.h"
#include "builder/tactics/region_work.h"
#include "builder/verify/realistic_inputs.h"
#include "builder/verify/time_engine.h"
#include "builder/verify/user_data.h"
#include "formats/engine_file/write_engine.h"
#include "formats/npy/array_file.h"

namespace kiln {

Result<> BuildState::verify(double from, double to) {
  if (!options_.verify || target_.is_elsewhere()) return Ok();
  for (bool passed = false; !passed;) {
    KILN_ASSIGN_OR_RETURN(passed, verify_once(from, to));
  }
  verified_ = true;
  return Ok();
}

// True when every point agrees; otherwise the first point at fault has got another tactic.
Result<bool> BuildState::verify_once(double from, double to) {
  KILN_ASSIGN_OR_RETURN(auto bytes, to_bytes(make_plan()));
  KILN_ASSIGN_OR_RETURN(const Engine engine,
                        Engine::load_bytes(SharedBytes::take(std::move(bytes)), load_options()));
  EngineVerifier verifier(
      engine, [this](const ShapePoint& point) { return import(point); }, accuracy(),
      reference_options());
  const double width = (to - from) / static_cast<double>(points_.size());
  for (size_t i = 0; i < points_.size(); ++i) {
    Point& point = points_[i];
    const double at = from + width * static_cast<double>(i);
    meter_.begin("verify " + point.shape.name, at, at + width);
    auto verdict = verifier.verify(point.shape);
    if (!verdict.ok()) {
      return std::move(verdict).error().context("verify shape point '" + point.shape.name + "'");
    }
    point.verification = verdict->checks;
    if (!verdict->failing_inputs.empty()) {
      KILN_RETURN_IF_ERROR(repair(point, *verdict));
      return false;
    }
  }
  KILN_ASSIGN_OR_RETURN(const bool passed, verify_user_data(verifier));
  if (passed && target_.cuda) KILN_RETURN_IF_ERROR(time_points(engine));
  return passed;
}

Result<> BuildState::time_points(const Engine& engine) {
  for (Point& point : points_) {
    KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(point.shape));
    std::vector<HostTensor> inputs;
    for (const HostTensor& tensor : realistic_inputs(graph, 1, fixed_inputs(graph, point.shape))) {
      const DType dtype = point.regions.type(point.regions.inputs()[inputs.size()]).dtype;
      KILN_ASSIGN_OR_RETURN(inputs.emplace_back(), convert_tensor(tensor, dtype));
    }
    auto us = time_engine(engine, point.shape.name, inputs);
    if (!us.ok()) {
      // The engine has been verified: a time for the report is not worth the build.
      notes_.push_back(
          std::move(us).error().context("time shape point '" + point.shape.name + "'").message);
      continue;
    }
    point.graph_us = *us;
  }
  return Ok();
}

Result<> BuildState::check_user_data(std::span<const ShapePoint> points) {
  if (options_.verify_data.empty()) return Ok();
  KILN_ASSIGN_OR_RETURN(const auto files, read_user_data(options_.verify_data));
  std::vector<std::optional<Error>> misfits(files.size());
  std::vector<bool> fits(files.size());
  std::set<std::string> asked;  // single rows of a shape set are those of all its points
  for (const ShapePoint& point : points) {
    const bool by_rows = batch_padding_ && point.batch > 0;
    if (by_rows && !asked.insert(point.shape_set).second) continue;
    const ShapePoint shape = by_rows ? with_rows(point, 1) : point;
    KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(shape));
    for (size_t i = 0; i < files.size(); ++i) {
      if (fits[i]) continue;
      const auto requests = user_requests(files[i], graph, shape, 1);
      fits[i] = requests.ok();
      if (!requests.ok() && !misfits[i]) misfits[i] = requests.error();
    }
    if (std::find(fits.begin(), fits.end(), false) == fits.end()) return Ok();
  }
  return *misfits[static_cast<size_t>(std::find(fits.begin(), fits.end(), false) - fits.begin())];
}

// The user's inputs at every point that they fit; a file that fits none is an error.
Result<bool> BuildState::verify_user_data(EngineVerifier& verifier) {
  if (options_.verify_data.empty()) return true;
  KILN_ASSIGN_OR_RETURN(const auto files, read_user_data(options_.verify_data));
  KILN_ASSIGN_OR_RETURN(const int64_t most_rows, user_rows_per_file(files.size()));
  for (const UserData& data : files) {
    std::optional<Error> misfit;
    bool fits = false;
    for (Point& point : points_) {
      const auto verdict = verifier.verify_data(point.shape, data, most_rows);
      if (!verdict.ok() && verdict.error().code == ErrorCode::kInvalidArgument) {
        if (!misfit) misfit = verdict.error();
        continue;
      }
      if (!verdict.ok()) return verdict.error();
      fits = true;
      point.verification.insert(point.verification.end(), verdict->checks.begin(),
                                verdict->checks.end());
      if (verdict->failing_inputs.empty()) continue;
      KILN_RETURN_IF_ERROR(repair(point, *verdict));
      return false;
    }
    if (!fits) return *misfit;
  }
  return true;
}

// As many as the reference answers in some seconds, counted in operations so that equal builds
// check equal rows.
Result<int64_t> BuildState::user_rows_per_file(size_t files) {
  constexpr uint64_t kFlops = 50'000'000'000;
  constexpr int64_t kFewest = 1, kMost = 16;
  const ShapePoint& shape = points_.front().shape;
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(shape));
  const uint64_t of_row =
      region_work(graph).flops / static_cast<uint64_t>(std::max<int64_t>(shape.batch, 1)) + 1;
  const uint64_t rows = kFlops / of_row / std::max<size_t>(files, 1);
  return static_cast<int64_t>(std::clamp<uint64_t>(rows, kFewest, kMost));
}

// Keeps what went wrong, so that it can be run elsewhere.
Error BuildState::wrong_engine(const Point& point, const PointVerdict& verdict,
                               std::string what) const {
  std::vector<npy::Array> arrays;
  const ir::Graph& graph = point.regions;
  for (size_t i = 0; i < verdict.failing_inputs.size(); ++i) {
    const HostTensor& tensor = verdict.failing_inputs[i];
    arrays.push_back({graph.value(graph.inputs()[i]).name, tensor.type, false, tensor.bytes});
  }
  const std::string path = options_.output.string() + ".failing.npz";
  what += "; nothing was written";
  if (npy::write_npz(path, arrays).ok()) what += "; its inputs are kept in '" + path + "'";
  return {ErrorCode::kVerification, std::move(what)};
}

Result<Fault> BuildState::find_fault(const Point& point, const PointVerdict& verdict) {
  KILN_ASSIGN_OR_RETURN(const ir::Graph graph, import(point.shape));
  std::vector<HostTensor> inputs;  // the engine's may be narrower than the model's
  for (const HostTensor& tensor : verdict.failing_inputs) {
    const DType dtype = graph.type(graph.inputs()[inputs.size()]).dtype;
    KILN_ASSIGN_OR_RETURN(inputs.emplace_back(), convert_tensor(tensor, dtype));
  }
  KILN_ASSIGN_OR_RETURN(const auto want, run_reference(graph, inputs, reference_options()));
  return locate_fault(point.scheduled.schedule, verdict.failing_inputs, want, load_options(),
                      reference_options());
}

Result<> BuildState::repair(Point& point, const PointVerdict& verdict) {
  constexpr int kMostRepairs = 8;
  std::string seen;
  for (const report::Verification& check : verdict.checks) {
    if (!check.passed && seen.empty()) seen = check.what + ": " + check.detail;
  }
  const std::string where =
      "shape point '" + point.shape.name + "' disagrees with the reference (" + seen + ")";
  const auto fault = find_fault(point, verdict);
  if (!fault.ok()) {
    return wrong_engine(point, verdict,
                        where + "; the fault could not be located: " + fault.error().message);
  }
  const std::string found = where + ": " + fault->what;
  if (++repairs_ > kMostRepairs) {
    return wrong_engine(point, verdict,
                        found + "; " + std::to_string(kMostRepairs) +
                            " repairs did not help; please report this with the model");
  }
  if (!fault->region && options_.precision != Precision::kFp32) {
    KILN_ASSIGN_OR_RETURN(const bool tightened, tighten_precision(point, verdict));
    if (tightened) {
      notes_.push_back(where + "; keeping more regions in f32");
      return Ok();
    }
    return wrong_engine(
        point, verdict,
        found + "; or " + sensitivity_text(point) + "; build with --fp32" +
            (is_narrow(options_.precision) ? ", or give typical inputs with --verify-data" : ""));
  }
  const TacticKey* winner = fault->region ? &point.scheduled.winners[*fault->region] : nullptr;
  if (!winner || winner->candidate.empty()) {
    return wrong_engine(point, verdict, found + "; please report this with the model");
  }
  ban_tactic(*winner, *selection_);
  auto repaired = schedule(point);
  if (!repaired.ok()) {
    return wrong_engine(
        point, verdict,
        found + "; " + repaired.error().message + "; please report this with the model");
  }
  notes_.push_back(found + "; trying another tactic");
  return Ok();
}

}  // namespace kiln
