#include "formats/engine_file/read_engine.h"

#include <string>

#include "formats/engine_file/check_plan.h"
#include "formats/engine_file/container.h"
#include "formats/engine_file/encode_plan.h"
#include "formats/file/mapped_file.h"

namespace kiln {
namespace {

Result<plan::Plan> parse(const SharedBytes& file, const ReadOptions& options) {
  KILN_ASSIGN_OR_RETURN(const engine_file::Sections sections,
                        engine_file::find_sections(file.bytes, options.check_weights));
  const auto& [plan_bytes, blobs, report, weights] = sections;
  auto plan = engine_file::decode_plan(plan_bytes, {file.owner, blobs});
  if (!plan) return std::move(plan).error().context("section 'plan'");
  plan->report_json.assign(reinterpret_cast<const char*>(report.data()), report.size());
  plan->weights = {file.owner, weights};
  auto checked = plan::check_plan(*plan);
  if (!checked) return std::move(checked).error().context("section 'plan'");
  return plan;
}

}  // namespace

Result<plan::Plan> parse_engine(const SharedBytes& file, std::string_view name,
                                const ReadOptions& options) {
  auto plan = parse(file, options);
  if (!plan) return std::move(plan).error().context("engine '" + std::string(name) + "'");
  return plan;
}

Result<plan::Plan> read_engine(const std::filesystem::path& path, const ReadOptions& options) {
  KILN_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path));
  return parse_engine(file, path.string(), options);
}

}  // namespace kiln
