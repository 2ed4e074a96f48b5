#include "builder/driver/check_paths.h"

#include <array>
#include <vector>

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

std::array<NamedPath, 3> written_files(const BuildOptions& options) {
  return {{{"output", options.output},
           {"report", options.report},
           {"timing cache", options.timing_cache}}};
}

Result<> check_different(const NamedPath& a, const NamedPath& b) {
  if (a.path.empty() || b.path.empty() || !is_same_file(a.path, b.path)) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               in_words(a) + " and " + in_words(b) + " are one file, expected different ones"};
}

// Nothing that is written is one of the files that are read.
Result<> check_kept(std::span<const NamedPath> read, const BuildOptions& options) {
  for (const NamedPath& file : written_files(options)) {
    for (const NamedPath& other : read) KILN_RETURN_IF_ERROR(check_different(file, other));
  }
  return Ok();
}

// Every file of the folder of verify data.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    files.push_back(entry->path());
  }
  return files;
}

}  // namespace

Result<> check_external_data(std::span<const std::filesystem::path> files,
                             const BuildOptions& options) {
  std::vector<NamedPath> read;
  for (const auto& file : files) read.push_back({"external data", file});
  return check_kept(read, options);
}

Result<> check_paths(const std::filesystem::path& model, const BuildOptions& options) {
  const auto written = written_files(options);
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t k = i + 1; k < written.size(); ++k) {
      KILN_RETURN_IF_ERROR(check_different(written[i], written[k]));
    }
  }
  const auto data = files_of(options.verify_data);
  std::vector<NamedPath> read = {{"model", model}, {"verify data", options.verify_data}};
  for (const auto& file : data) read.push_back({"verify data", file});
  for (const auto& file : options.plugins) read.push_back({"plugin", file});
  for (const auto& file : options.sources) read.push_back({"shape values", file});
  KILN_RETURN_IF_ERROR(check_kept(read, options));
  if (options.check_only) return Ok();
  std::error_code error;
  if (!options.verify_data.empty() && !std::filesystem::exists(options.verify_data, error)) {
    return Error{ErrorCode::kIo, "read '" + options.verify_data.string() + "': " +
                                     (error ? error.message() : "no such file or directory")};
  }
  if (!options.report.empty()) KILN_RETURN_IF_ERROR(check_can_write(options.report));
  if (!options.dry_run) KILN_RETURN_IF_ERROR(check_can_write(options.output));
  const auto& cache = options.timing_cache;
  const bool shared = std::filesystem::is_regular_file(cache, error);
  if (!cache.empty() && !shared && options.target_device.empty()) {
    KILN_RETURN_IF_ERROR(check_can_write(cache));
  }
  return Ok();
}

}  // namespace kiln
