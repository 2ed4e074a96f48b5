#include "builder/fixed_values.h"

#include "formats/npy/array_file.h"

namespace kiln {

Result<std::map<std::string, FixedValue>> read_fixed_values(const std::filesystem::path& path) {
  KILN_ASSIGN_OR_RETURN(const auto arrays, npy::read_arrays(path));
  std::map<std::string, FixedValue> values;
  for (const npy::Array& array : arrays) {
    const auto bytes = array.data.bytes;
    values[array.name] = {array.type, {bytes.begin(), bytes.end()}};
  }
  return values;
}

}  // namespace kiln
