// The user's own inputs for verification: --verify-data.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "builder/ir/graph.h"
#include "builder/shape_point.h"
#include "builder/verify/reference.h"
#include "formats/npy/array_file.h"

namespace kiln {

struct UserData {
  std::filesystem::path file;
  std::vector<npy::Array> arrays;  // by input name
};

// An .npz, or every .npz of a folder, in the order of their names.
Result<std::vector<UserData>> read_user_data(const std::filesystem::path& path);

// The data cut into requests of the point's batch, at most `most_rows` rows in all; the last one is
// filled up with the first rows again. kInvalidArgument if an array is missing or of another type,
// if arrays differ in their rows, or if one is fixed at another value: names file, array, found and
// expected.
Result<std::vector<std::vector<HostTensor>>> user_requests(const UserData& data,
                                                           const ir::Graph& graph,
                                                           const ShapePoint& point,
                                                           int64_t most_rows);

}  // namespace kiln
