#include "builder/driver/check_paths.h"

#include "formats/file/atomic_file.h"

namespace kiln {
namespace {

struct NamedPath {
  const char* role;
  const std::filesystem::path& path;
};

std::string in_words(const NamedPath& named) {
  return std::string(named.role) + " '" + named.path.string() + "'";
}

}  // namespace

Result<> check_paths(const std::filesystem::path& model, const BuildOptions& options) {
  const NamedPath written[] = {{"output", options.output},
                               {"report", options.report},
                               {"timing cache", options.timing_cache}};
  const NamedPath read[] = {{"model", model}, {"verify data", options.verify_data}};
  const auto check = [](const NamedPath& a, const NamedPath& b) -> Result<> {
    if (a.path.empty() || b.path.empty() || !is_same_file(a.path, b.path)) return Ok();
    return Error{ErrorCode::kInvalidArgument,
                 in_words(a) + " and " + in_words(b) + " are one file, expected different ones"};
  };
  for (const NamedPath& file : written) {
    for (const NamedPath* other = &file + 1; other != std::end(written); ++other) {
      KILN_RETURN_IF_ERROR(check(file, *other));
    }
    for (const NamedPath& other : read) KILN_RETURN_IF_ERROR(check(file, other));
  }
  if (options.check_only) return Ok();
  std::error_code error;
  if (!options.verify_data.empty() && !std::filesystem::exists(options.verify_data, error)) {
    return Error{ErrorCode::kIo, "read '" + options.verify_data.string() + "': " +
                                     (error ? error.message() : "no such file or directory")};
  }
  if (!options.report.empty()) KILN_RETURN_IF_ERROR(check_can_write(options.report));
  if (!options.dry_run) KILN_RETURN_IF_ERROR(check_can_write(options.output));
  return Ok();
}

}  // namespace kiln
